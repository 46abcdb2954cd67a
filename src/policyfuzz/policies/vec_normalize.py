"""VecNormalize of stable-baselines3 without its environment: found, read, and applied."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.files import absolute_path, is_file
from policyfuzz.policies.sb3_file import MOST_PARAMETER_BYTES, unpickled
from policyfuzz.policies.uri import read_model


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Shifts, scales and clips observations as they were during training."""

    mean: Mapping[str, NDArray[np.float64]]  #: by key of the observation; "" where it is no Dict
    scale: Mapping[str, NDArray[np.float64]]  #: of the same keys and shapes
    limit: float

    @classmethod
    def from_pickle(cls, content: bytes, name: str) -> "Normaliser":
        """The statistics in `content`, from a file called `name`; runs whatever code it brings along."""
        wanted = extras.load("stable_baselines3.common.vec_env", "sb3").VecNormalize
        stored = unpickled(content, name)
        if not isinstance(stored, wanted):
            raise PolicyError(
                f"{name} holds {type(stored).__name__}, expected the statistics of VecNormalize",
                hint="they are saved by vec_env.save(...), not by model.save_replay_buffer(...) or the like",
            )
        try:
            return cls._of(stored)
        except Exception as error:  # attributes may be missing, or anything
            raise PolicyError(
                f"the statistics in {name} cannot be read: {type(error).__name__}: {error}",
                hint="it may be damaged, or saved by another version: save it again with vec_env.save(...)",
            ) from error

    @classmethod
    def _of(cls, stored: Any) -> "Normaliser":
        if not stored.norm_obs:
            return cls({}, {}, float(stored.clip_obs))
        statistics = stored.obs_rms
        if isinstance(statistics, dict):
            statistics = {key: statistics[key] for key in stored.norm_obs_keys or statistics}
        else:
            statistics = {"": statistics}
        mean = {key: np.asarray(each.mean, np.float64) for key, each in statistics.items()}
        scale = {key: np.sqrt(each.var + stored.epsilon) for key, each in statistics.items()}
        return cls(mean, scale, float(stored.clip_obs))

    def __call__(self, key: str, observations: NDArray[Any]) -> NDArray[Any]:
        """The part `key` of `observations` (m, ...), as the network expects it."""
        if key not in self.mean:
            return observations
        scaled = (observations - self.mean[key]) / self.scale[key]
        return np.clip(scaled, -self.limit, self.limit).astype(np.float32)

    def misfit(self, shapes: Mapping[str, tuple[int, ...]]) -> str:
        """What is wrong with observations of `shapes` by key, for a reader; empty if they fit."""
        for key, mean in self.mean.items():
            if shapes.get(key) != mean.shape:
                part = f" of {key!r}" if key else ""
                given = f"has shape {shapes[key]}" if key in shapes else "is not there"
                return f"statistics{part} have shape {mean.shape}, but the observation{part} {given}"
        return ""


@dataclass(frozen=True, slots=True)
class Statistics:
    """A file of statistics, read."""

    path: Path | None  #: None where there are none, or none that fit
    content: bytes
    normaliser: Normaliser
    notes: tuple[str, ...]

    @classmethod
    def read(cls, path: Path | None, shapes: Mapping[str, tuple[int, ...]], is_wanted: bool) -> "Statistics":
        """The statistics at `path` for observations of `shapes` by key; runs the code that they bring along.

        Those that the user did not ask for, because they were found, may belong to another model and are
        left out if they do not fit.
        """
        nothing = Normaliser({}, {}, 0.0)
        if path is None:
            return cls(None, b"", nothing, ())
        content = read_model(path, MOST_PARAMETER_BYTES)
        normaliser = Normaliser.from_pickle(content, path.name)
        misfit = normaliser.misfit(shapes)
        if misfit and is_wanted:
            raise PolicyError(
                f"{path.name} does not fit the environment: its {misfit}",
                hint="does it belong to this model, and has the environment the wrappers of training?",
            )
        if misfit:
            return cls(None, b"", nothing, (f"{path.name} beside it is not used: its {misfit}",))
        if not normaliser.mean:
            note = f"{path.name} beside it (VecNormalize) leaves observations as they are"
        else:
            note = f"observations are normalised by {path.name} (VecNormalize)"
        return cls(path, content, normaliser, (note,))


def find(model: Path, wanted: str | None) -> Path | None:
    """The file of statistics for the zip `model`: the `wanted` one, none, or what lies beside it."""
    if wanted is None:
        return next((path for path in _places(model) if path.is_file()), None)
    if wanted.lower() == "none":
        return None
    for path in (absolute_path(wanted, PolicyError), model.parent / wanted):
        if is_file(path):
            return path
    lying = next((path for path in _places(model) if path.is_file()), None)
    raise PolicyError(
        f"there are no statistics {wanted!r}, neither in this folder nor beside {model.name}",
        hint=f"did you mean {lying}?"
        if lying
        else "name the file that vec_env.save(...) has written, or none",
    )


def _places(model: Path) -> Iterator[Path]:
    folder, stem = model.parent, model.stem
    checkpoint = re.fullmatch(r"(.+)_(\d+)_steps", stem)
    if checkpoint is not None:  # the names that CheckpointCallback gives
        prefix, steps = checkpoint.groups()
        yield folder / f"{prefix}_vecnormalize_{steps}_steps.pkl"
    for name in ("vecnormalize", "vec_normalize"):
        yield folder / f"{stem}_{name}.pkl"
    for name in ("vecnormalize", "vec_normalize"):
        yield folder / f"{name}.pkl"
    # RL Zoo: RUN/ENV.zip or RUN/best_model.zip with RUN/ENV/vecnormalize.pkl, where RUN is ENV_1 or the like
    for environment in (stem, re.sub(r"_\d+$", "", folder.name)):
        yield folder / environment / "vecnormalize.pkl"
