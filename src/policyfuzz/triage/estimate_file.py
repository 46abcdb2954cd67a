"""The file that an estimation goes on from after a stop: arrays and a few facts, no code."""

import io
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.files import read_regular
from policyfuzz.core.inputs import SEED_END
from policyfuzz.core.target import Run, Target
from policyfuzz.core.zip_files import DamagedZip, read_arrays
from policyfuzz.store.plain_records import to_plain
from policyfuzz.triage.estimate import EstimateSettings
from policyfuzz.triage.estimation import Counts, Estimation, Phase, Why
from policyfuzz.triage.subset_simulation import FAILED, SubsetSimulation

#: Raised when older files can no longer be read.
_FORMAT = 1
#: Of a file, and of the facts in it.
_MOST_BYTES, _MOST_FACT_BYTES = 1_000_000_000, 1 << 20
#: No count is larger.
_MOST = 2**53
#: Names of the arrays of subset simulation begin with this.
_CLIMB = "climb_"


def estimation_bytes(estimation: Estimation) -> bytes:
    """The content of the file."""
    facts = json.dumps(_facts(estimation.target, estimation.settings)).encode()
    arrays: dict[str, NDArray[Any]] = {
        "facts": np.frombuffer(facts, np.uint8),
        "counts": np.array(list(asdict(estimation.counts).values()), np.int64),
        "first_scores": estimation.first_scores,
    }
    if estimation.counts.draws:
        known = json.dumps(to_plain(estimation.estimate)).encode()
        arrays["estimate"] = np.frombuffer(known, np.uint8)  # for readers who do not have the target
    if estimation.climb is not None:
        arrays |= {_CLIMB + one.name: getattr(estimation.climb, one.name) for one in fields(SubsetSimulation)}
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, **arrays)
    return data.getvalue()


def read_estimation(path: Path, target: Target, run: Run, settings: EstimateSettings) -> Estimation:
    """The estimation in the file at `path`, if it is one of the same target, policy and settings."""
    try:
        arrays = read_arrays(read_regular(path, _MOST_BYTES, CampaignError), _MOST_BYTES)
        _check_facts(path, _facts_in(arrays), _facts(target, settings))
        return _restored(arrays, Estimation.begin(target, run, settings))
    except (DamagedZip, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CampaignError(
            f"{path} holds no estimate that can go on: {error!s:.200}",
            "name another file with -o, or remove this one",
        ) from error


def known_estimate(content: bytes) -> Any:
    """What a file with this `content` says of its estimate so far; None if it does not.

    It is for readers without the target. An estimation that goes on does not look at it.
    """
    arrays = read_arrays(content, _MOST_BYTES)
    return json.loads(_text(arrays["estimate"])) if "estimate" in arrays else None


def _facts(target: Target, settings: EstimateSettings) -> dict[str, Any]:
    """What an estimate follows from."""
    return {
        "format": _FORMAT,
        "target": target.name,
        "policy": target.policy_sha256,
        "code": target.code_sha256,
        "input": list(target.inputs.names),
        **asdict(settings),
    }


def _facts_in(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    values = json.loads(_text(arrays["facts"]))
    if not isinstance(values, dict):
        raise ValueError("its facts have no names")
    return values


def _text(array: NDArray[Any]) -> bytes:
    if array.dtype != np.uint8 or array.ndim != 1 or array.size > _MOST_FACT_BYTES:
        raise ValueError("its facts are no text")
    return array.tobytes()


#: Facts for a reader.
_WORDS = {
    "format": "version",
    "policy": "policy file",
    "code": "code of the target",
    "max_episodes": "--max-execs",
}


def _check_facts(path: Path, stored: dict[str, Any], now: dict[str, Any]) -> None:
    for name, value in now.items():
        if stored.get(name) != value:
            shown = f": {stored.get(name)!r:.80}, now {value!r:.80}"
            raise CampaignError(
                f"{path} is an estimate with another {_WORDS.get(name, name)}{shown}",
                "name another file with -o, or remove this one to begin anew",
            )


def _restored(arrays: dict[str, NDArray[Any]], estimation: Estimation) -> Estimation:
    """`estimation`, which has just begun, as far as `arrays` say; raises ValueError if they make no sense."""
    numbers = _checked(arrays, "counts", np.zeros(len(fields(Counts)), np.int64))
    counts = Counts(*numbers.tolist())
    if numbers.min() < 0 or numbers.max() > _MOST or not counts.failures <= counts.draws <= counts.episodes:
        raise ValueError("its counts contradict each other")
    Phase(counts.phase), Why(counts.why)  # raises for others
    scores = _checked(arrays, "first_scores", estimation.first_scores)
    if counts.first > len(scores) or (counts.phase != Phase.DRAW and not scores.size == counts.first):
        raise ValueError("its first draws are not those of these settings")
    if counts.phase == Phase.DRAW and (estimation.counts.phase != Phase.DRAW or counts.first == len(scores)):
        raise ValueError("its first draws are not those of these settings")
    climb = _climb(arrays, estimation) if _CLIMB + "step" in arrays else None
    if climb is None and counts.phase == Phase.CLIMB:
        raise ValueError("it has no particles")
    estimation.counts, estimation.first_scores, estimation.climb = counts, scores.copy(), climb
    return estimation


def _climb(arrays: dict[str, NDArray[Any]], estimation: Estimation) -> SubsetSimulation:
    settings, uniform_map = estimation.settings, estimation.target.inputs.from_uniform
    if uniform_map is None or not settings.particles:
        raise ValueError("it has particles, and these settings have none")
    like = SubsetSimulation.empty(settings.replicates, settings.particles, uniform_map.coordinates)
    names = [one.name for one in fields(SubsetSimulation)]
    climb = SubsetSimulation(
        **{name: _checked(arrays, _CLIMB + name, getattr(like, name)).copy() for name in names}
    )
    is_possible = (
        ((climb.uniform >= 0) & (climb.uniform <= 1)).all()
        and (climb.seeds < SEED_END).all()
        and not np.isnan(climb.scores).any()
        and (climb.thresholds > FAILED).all()
        and ((climb.log_probabilities <= 0) & (climb.log_probabilities > -_MOST)).all()
        and ((climb.sizes <= 0) & (climb.sizes > -_MOST)).all()
        and min(climb.accepted.min(), climb.levels.min(), climb.step[0]) >= 0
        and max(climb.accepted.max(), climb.levels.max(), climb.step[0]) < _MOST
    )
    if not is_possible:
        raise ValueError("its particles make no sense")
    return climb


def _checked(arrays: dict[str, NDArray[Any]], name: str, like: NDArray[Any]) -> NDArray[Any]:
    """The array called `name`, of the type and shape of `like`."""
    array = arrays[name]
    if array.dtype != like.dtype or array.shape != like.shape:
        raise ValueError(f"{name} is {array.dtype} {array.shape}, expected {like.dtype} {like.shape}")
    return array
