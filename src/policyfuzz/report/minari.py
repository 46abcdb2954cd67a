"""Episodes as a dataset in the format of Minari, Farama's collection of offline data."""

import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.core.recording import Recording
from policyfuzz.core.target import Target
from policyfuzz.core.whole_file import writing

#: How Minari calls datasets; the folder is called so, too.
_NAME = re.compile(r"[\w-]+-v\d+", re.ASCII)
#: Where Minari looks for datasets.
_FOLDER_VARIABLE = "MINARI_DATASETS_PATH"
#: Signals of environments that say how an episode ended.
_TERMINATED, _TRUNCATED = "terminated", "truncated"


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """An episode, and where it comes from."""

    recording: Recording
    finding: int
    case_seed: int
    input: NDArray[np.float64]  #: (d,)
    is_witness: bool = False  #: True: it avoids the crash of the finding, and does not show it


def check_dataset_name(folder: Path) -> None:
    """Refuse a folder that exists, or that no dataset can be called."""
    if not _NAME.fullmatch(folder.name):
        raise UsageError(
            f"a Minari dataset cannot be called {folder.name!r}",
            "name a folder as Minari does: letters, digits, - and _, and a version at the end: findings-v0",
        )
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} exists already", "name a new folder, such as the next version")


def write_minari(folder: Path, target: Target, episodes: Sequence[RecordedEpisode]) -> None:
    """Write `episodes` of `target` as a dataset into `folder`, which appears when it is complete.

    Load it by minari.MinariDataset(folder / "data"), or by its name with MINARI_DATASETS_PATH set to the
    folder around it. `infos` tell the finding, case seed and input of each episode.
    """
    check_dataset_name(folder)
    minari: Any = extras.load("minari", "minari")
    extras.load("h5py", "minari")
    if not episodes:
        raise UsageError("there are no episodes to write", "let the campaign search for longer")
    observations = [_numbers(target, "observations", one.recording.observations) for one in episodes]
    actions = [_numbers(target, "actions", one.recording.actions) for one in episodes]
    buffers = [
        _buffer(number, one, observations[number], actions[number]) for number, one in enumerate(episodes)
    ]
    with writing(folder):
        around = folder.absolute().parent  # Minari joins a relative path with itself
        around.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=around, prefix=".unfinished-") as unfinished:
            with _datasets_in(unfinished), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that nobody is named as the author
                minari.create_dataset_from_buffers(
                    folder.name,
                    buffers,
                    observation_space=_observation_space(observations),
                    action_space=_action_space(target, actions),
                    algorithm_name=target.policy_name,
                    description=_description(target),
                    data_format="hdf5",
                    jpeg_encoding=False,
                )
            (Path(unfinished) / folder.name).rename(folder)


@contextmanager
def _datasets_in(folder: str) -> Iterator[None]:
    """Let Minari write into `folder`; it takes no path, only this variable."""
    before = os.environ.get(_FOLDER_VARIABLE)
    os.environ[_FOLDER_VARIABLE] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FOLDER_VARIABLE]
        else:
            os.environ[_FOLDER_VARIABLE] = before


def _numbers(target: Target, what: str, values: Sequence[Any]) -> NDArray[Any]:
    """`values` (t, ...) as an array of numbers."""
    array = np.array(values)
    if array.dtype.names is not None or array.dtype.kind not in "biuf":
        raise UsageError(
            f"the {what} of {target.name} are {array.dtype}, and a dataset takes arrays of numbers only",
            "wrap the environment so that it has Box or Discrete spaces: gym:ENVIRONMENT:wrap=MODULE:CLASS",
        )
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def _buffer(
    number: int,
    episode: RecordedEpisode,
    observations: NDArray[Any],
    actions: NDArray[Any],
) -> Any:
    collector: Any = extras.load("minari.data_collector", "minari")
    steps, times = len(actions), len(observations)
    is_terminated = _is_terminated(episode.recording)
    ends = np.zeros(steps, np.bool_)
    ends[-1:] = True
    infos = {
        "finding": episode.finding,
        "case_seed": episode.case_seed,
        "is_witness": episode.is_witness,
        "input": episode.input,
    }
    return collector.EpisodeBuffer(
        id=number,
        seed=episode.case_seed,
        observations=observations,
        actions=actions,
        rewards=episode.recording.rewards[1:],
        terminations=ends & is_terminated,
        truncations=ends & ~np.bool_(is_terminated),
        infos={name: np.repeat(np.array([value]), times, axis=0) for name, value in infos.items()},
    )


def _is_terminated(recording: Recording) -> bool:
    """True if the episode ended by itself, and no limit of steps ended it."""
    last = dict(zip(recording.signal_names, recording.signals[-1].tolist(), strict=True))
    if _TERMINATED in last and _TRUNCATED in last:
        return bool(last[_TERMINATED] > 0)
    return recording.has_ended


def _observation_space(parts: Sequence[NDArray[Any]]) -> Any:
    spaces: Any = extras.load("gymnasium.spaces", "gym")
    shape, kind = parts[0].shape[1:], np.result_type(*parts)
    if kind.kind in "iu" and not shape:
        return spaces.Discrete(int(max(one.max() for one in parts)) + 1)
    if kind.kind in "iu":
        return spaces.Box(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind)
    return spaces.Box(-np.inf, np.inf, shape, kind)


def _action_space(target: Target, parts: Sequence[NDArray[Any]]) -> Any:
    """As the target says; where it does not, the smallest space that holds the actions."""
    spaces: Any = extras.load("gymnasium.spaces", "gym")
    shape, kind, known = parts[0].shape[1:], np.result_type(*parts), target.actions
    size = int(np.prod(shape))
    if known is None or len(known.low) != size:
        return _observation_space(parts)
    if kind.kind in "iu" and not shape:
        start = int(known.low[0])
        return spaces.Discrete(int(known.high[0]) - start + 1, start=start)
    low, high = (bound.reshape(shape).astype(kind) for bound in (known.low, known.high))
    return spaces.Box(low, high, shape, kind)


def _description(target: Target) -> str:
    facts = {"target": target.name, "policy": target.policy_uri, "input": list(target.inputs.names)}
    return f"Episodes that PolicyFuzz found: {json.dumps(facts)}"
