"""What a saved model tells about the returns it once got."""

import zipfile

import numpy as np

from policyfuzz.errors import PolicyError
from policyfuzz.policies.uri.sb3_archive import Archive


def recorded_return(archive: Archive) -> float | None:
    """Mean return of the last episodes in training, or of the evaluation that chose it as the best model."""
    found = _in_training(archive)
    return _as_best(archive) if found is None else found


def _in_training(archive: Archive) -> float | None:
    try:
        episodes = archive.unpickle("ep_info_buffer")
        returns = [float(episode["r"]) for episode in episodes or ()]
    except (PolicyError, KeyError, TypeError, ValueError):
        return None  # a record is nice to have; that of another version may not be readable
    return _mean(returns)


def _as_best(archive: Archive) -> float | None:
    """From the file that EvalCallback keeps beside the best model."""
    evaluations = archive.path.with_name("evaluations.npz")
    if archive.path.stem != "best_model" or not evaluations.is_file():
        return None
    try:
        with np.load(evaluations) as stored:
            results = np.asarray(stored["results"], np.float64)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile):
        return None
    return float(results.mean(axis=1).max()) if results.ndim == 2 and results.size else None


def _mean(returns: list[float]) -> float | None:
    finite = [value for value in returns if np.isfinite(value)]
    return float(np.mean(finite)) if finite else None
