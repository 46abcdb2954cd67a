"""A monitor that warns before a crash: a detector, its alarm threshold and what it was fitted to, in a file.

    monitor = Monitor.load("monitor.npz")
    monitor.score(observation)      how near a crash seems, larger is nearer
    monitor.alarm(observation)      True above the threshold

The file holds plain arrays and a few facts, no code, and it is read as a stranger's.
"""

import io
import json
import math
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyFuzzError, UsageError
from policyfuzz.core.files import read_regular
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.core.zip_files import DamagedZip, read_arrays
from policyfuzz.monitors.detectors import Detector, arrays_of, detector_of
from policyfuzz.monitors.watch import Watch

#: What a monitor is given.
OBSERVATIONS, ACTIVATIONS = "observations", "activations"
INPUTS = (ACTIVATIONS, OBSERVATIONS)
#: Raised when older files can no longer be read.
_FORMAT = 2
#: Of a file, and of the facts in it.
_MOST_BYTES, _MOST_FACT_BYTES = 1 << 28, 1 << 16
#: Names of the detector's arrays begin with this.
_ARRAYS = "detector_"


class MonitorError(PolicyFuzzError):
    """A monitor cannot be fitted, loaded, or given what it is given."""


@dataclass(frozen=True, slots=True)
class MonitorFacts:
    """What a monitor was fitted to, and what its threshold is for."""

    method: str  #: mean-shift, logistic, boosting or density
    input: str  #: OBSERVATIONS or ACTIVATIONS
    target: str
    policy: str  #: for readers
    policy_sha256: str  #: of the policy's content
    threshold: float  #: above which it raises an alarm
    wanted_rate: float  #: false alarms per nominal episode that the threshold was calibrated for
    calibration_episodes: int  #: nominal ones that the threshold was calibrated on
    window: int  #: steps before a crash that count as abnormal
    crash_lineages: int = 0  #: lineages of the crashes that it was fitted to


@dataclass(frozen=True, slots=True)
class Monitor:
    """Scores observations, or activations, one at a time or many."""

    facts: MonitorFacts
    detector: Detector
    #: (l,) names of the lineages of crashes and near-misses that it was fitted to: no test on those is worth
    #: anything.
    lineages: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    @property
    def input(self) -> str:
        """What it wants to be given: OBSERVATIONS or ACTIVATIONS."""
        return self.facts.input

    @property
    def threshold(self) -> float:
        """Scores above it are alarms."""
        return self.facts.threshold

    def score(self, given: Any, previous: Any = None) -> Any:
        """How near a crash seems: a number for one observation, (n,) for n of them, first axis.

        A monitor of activations is given activations instead. One whose detector `needs_previous` scores the
        way from the `previous` observation; without it the score is -inf: there is nothing to judge yet.
        """
        row = np.ascontiguousarray(given, np.float64)
        if row.shape == (self.detector.width,):  # what happens at every step of a policy
            if not self.detector.needs_previous:
                return self.detector.score(row, row)
            if np.shape(previous) == row.shape:
                return self.detector.score(row, np.ascontiguousarray(previous, np.float64))
        rows, is_one = self._rows(row)
        before = rows
        if self.detector.needs_previous:
            if previous is None:
                scores = np.full(len(rows), -math.inf)
                return float(scores[0]) if is_one else scores
            before, _ = self._rows(previous)
            if before.shape != rows.shape:
                raise UsageError(
                    f"{len(before)} previous rows for {len(rows)} rows", "give the row before of each"
                )
        scores = self.detector.scores(rows, before)
        return float(scores[0]) if is_one else scores

    def watch(self) -> Watch:
        """Its score of one episode, step by step, without looking after what came before."""
        return Watch(self)

    def alarm(self, given: Any, previous: Any = None) -> Any:
        """True where the score is above the threshold, or is NaN. Arguments as for `score`."""
        return self.is_alarm(self.score(given, previous))

    def is_alarm(self, score: Any) -> Any:
        """True where a `score`, or scores (n,), call for an alarm. What is not a number does."""
        is_quiet = score <= self.facts.threshold
        return not is_quiet if isinstance(score, float) else ~np.asarray(is_quiet)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it into the .npz file `path`."""
        file = Path(path)
        name, arrays = arrays_of(self.detector)
        facts = json.dumps({"format": _FORMAT, "detector": name, **asdict(self.facts)}).encode()
        data = io.BytesIO()
        stored = {f"{_ARRAYS}{key}": array for key, array in arrays.items()}
        plain: dict[str, Any] = {"facts": np.frombuffer(facts, np.uint8), "lineages": self.lineages, **stored}
        np.savez(data, allow_pickle=False, **plain)
        make_folder_of(file)
        with whole_file(file) as unfinished:
            unfinished.write_bytes(data.getvalue())
        return file

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Monitor":
        """The monitor in the file `path`."""
        content = read_regular(Path(path), _MOST_BYTES, MonitorError)
        try:
            arrays = read_arrays(content, _MOST_BYTES)
            name, facts = _facts_in(arrays.pop("facts"))
            lineages = arrays.pop("lineages")
            if lineages.dtype != np.uint64 or lineages.ndim != 1:
                raise ValueError("its lineages are no list of names")
            parts = {key.removeprefix(_ARRAYS): np.ascontiguousarray(one) for key, one in arrays.items()}
            return cls(facts, detector_of(name, parts), lineages)
        except (DamagedZip, KeyError, TypeError, ValueError, RecursionError) as error:
            raise MonitorError(
                f"{os.fspath(path)} holds no monitor: {error!s:.200}",
                "expected a file that policyfuzz monitor fit has written",
            ) from error

    def _rows(self, given: Any) -> tuple[NDArray[np.float64], bool]:
        """(n, width) rows, and whether it was a single one."""
        width = self.detector.width
        array = np.ascontiguousarray(given, np.float64)
        if array.ndim == 2 and array.shape[1] == width:
            return array, False
        if array.size == width:
            return array.reshape(1, width), True
        if array.ndim > 1 and array.size == len(array) * width:
            return array.reshape(len(array), width), False
        raise UsageError(
            f"{array.size:,} numbers of shape {array.shape}, and the monitor takes {width:,} {self.input}",
            f"it was fitted to {self.facts.target}; give one of its {self.input}, or several along the"
            " first axis",
        )


def _facts_in(array: NDArray[Any]) -> tuple[str, MonitorFacts]:
    """The name of the detector, and the facts, in the bytes `array`."""
    if array.dtype != np.uint8 or array.ndim != 1 or array.size > _MOST_FACT_BYTES:
        raise ValueError("its facts are no text")
    values = json.loads(array.tobytes())
    if not isinstance(values, dict) or values.pop("format", None) != _FORMAT:
        raise ValueError("it is of another version")
    name = values.pop("detector", "")
    kinds = {one.name: one.type for one in fields(MonitorFacts)}
    if not isinstance(name, str) or sorted(values) != sorted(kinds):
        raise ValueError(f"its facts are {', '.join(map(str, sorted(values)))[:200]}")
    for key, value in values.items():
        if type(value) is not kinds[key] or (type(value) is float and not math.isfinite(value)):
            raise ValueError(f"its {key} is {value!r:.50}")
    facts = MonitorFacts(**values)
    if facts.input not in INPUTS or min(facts.window, facts.calibration_episodes, facts.crash_lineages) < 0:
        raise ValueError(f"it takes {facts.input!r:.50}")
    return name, facts
