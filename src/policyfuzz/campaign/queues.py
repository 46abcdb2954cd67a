"""Cases that wait to be run, besides those of the search: second runs of findings, and imports."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions, Outcome
from policyfuzz.core.inputs import is_storable
from policyfuzz.core.visible import visible_line
from policyfuzz.search.cases import Cases, Purpose
from policyfuzz.store.records import CONFIRMED, FLAKY, Finding

#: One case in so many may be an import.
_CASES_PER_IMPORT = 8
#: Sources in the life of a campaign: an instance that changes its identity all the time would fill the
#: campaign file with them.
MAX_SOURCES = 1000


@dataclass(slots=True)
class Confirmations:
    """The queue of findings that wait for their second run."""

    dimensions: int
    _waiting: Cases = field(init=False)  #: `parents` are finding numbers
    _expected: dict[int, Outcome] = field(init=False, default_factory=dict)  #: of waiting and running ones

    def __post_init__(self) -> None:
        self._waiting = Cases.none(self.dimensions)

    def __len__(self) -> int:
        """Findings without a verdict, waiting or being run."""
        return len(self._expected)

    @property
    def numbers(self) -> set[int]:
        """Numbers of the findings without a verdict."""
        return set(self._expected)

    def add(self, findings: list[Finding], outcomes: list[Outcome], emitters: NDArray[np.int64]) -> None:
        """Queue `findings` of `emitters` (n,) for a second run that should have the same `outcomes`."""
        if not findings:
            return
        new = Cases.of(
            Purpose.CONFIRM,
            np.array([finding.input for finding in findings]),
            np.array([finding.case_seed for finding in findings], np.uint64),
            np.array([finding.id for finding in findings], np.int64),
        ).by(emitters)
        self._waiting = Cases.concatenate([self._waiting, new])
        numbers = (finding.id for finding in findings)
        self._expected |= dict(zip(numbers, outcomes, strict=True))

    def take(self, count: int) -> Cases:
        """Up to `count` cases to run."""
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def judge(self, cases: Cases, executions: Executions) -> list[tuple[int, str]]:
        """Number and status of each finding that was run again: confirmed if nothing at all differs."""
        verdicts = []
        for number, outcome in zip(cases.parents.tolist(), executions.outcomes, strict=True):
            is_same = self._expected.pop(number).is_same(outcome)
            verdicts.append((number, CONFIRMED if is_same else FLAKY))
        return verdicts

    def state(self) -> dict[str, NDArray[Any]]:
        """As arrays: the cases that wait, and the outcomes expected of them and of those being run."""
        numbers = sorted(self._expected)
        expected = [self._expected[number] for number in numbers]
        return {
            **self._waiting.state("waiting."),
            "numbers": np.array(numbers, np.int64),
            "kinds": np.array([outcome.kind for outcome in expected], np.int64),
            "steps": np.array([outcome.step for outcome in expected], np.int64),
            "returns": np.array([outcome.episode_return for outcome in expected]),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a `state`."""
        self._waiting = Cases.from_state(state, "waiting.", self.dimensions)
        rows = zip(*(state[name].tolist() for name in ("kinds", "steps", "returns")), strict=True)
        self._expected = dict(zip(state["numbers"].tolist(), (Outcome(*row) for row in rows), strict=True))
        if not set(self._waiting.parents.tolist()) <= self.numbers:
            raise ValueError("findings wait for a second run of which nothing is expected")


@dataclass(frozen=True, slots=True)
class Source:
    """An instance that cases were imported from."""

    instance: str  #: its identity, whatever its folder is called
    name: str  #: of its folder, such that it can be stored: not every name of a folder is text
    batches_read: int = 0  #: sync batches that need not be read again

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", visible_line(self.name))


@dataclass(slots=True)
class ImportQueue:
    """Imported cases that have not been run. Nothing is imported twice."""

    dimensions: int
    imports_seeds: bool = True  #: False: findings only, for a search without a corpus
    _sources: list[Source] = field(init=False, default_factory=list)  #: numbered by their place
    _queue: Cases = field(init=False)
    _taken: int = field(init=False, default=0)  #: cases at the start of the queue that were given out
    _is_stored: bool = field(init=False, default=True)  #: only `_taken` changed since the last `state`

    def __post_init__(self) -> None:
        self._queue = Cases.none(self.dimensions)

    def __len__(self) -> int:
        """Cases that wait."""
        return len(self._queue) - self._taken

    def source_number(self, instance: str, name: str) -> int:
        """The number of the source `instance`, whose folder is now called `name`."""
        for number, source in enumerate(self._sources):
            if source.instance == instance:
                self._sources[number] = replace(source, name=name)
                return number
        self._sources.append(Source(instance, name))
        return len(self._sources) - 1

    def source(self, number: int) -> Source:
        """The source of this `number`."""
        return self._sources[number]

    def accepts(self, instance: str) -> bool:
        """False for a new source if there are too many."""
        is_known = any(source.instance == instance for source in self._sources)
        return is_known or len(self._sources) < MAX_SOURCES

    def add(
        self, source: int, batches_read: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]
    ) -> None:
        """Queue `inputs` (n, d) with case `seeds` (n,) of a `source` before all that wait already.

        The first `batches_read` sync batches of the source need not be read again.
        """
        new = Cases.of(Purpose.IMPORT, inputs, seeds, np.full(len(inputs), source, np.int64))
        self._queue, self._taken = Cases.concatenate([new, self._queue[self._taken :]]), 0
        self._sources[source] = replace(self._sources[source], batches_read=batches_read)
        self._is_stored = False

    def drop_oldest(self, most: int) -> int:
        """Drop the cases that have waited longest until `most` are left; return how many were dropped."""
        dropped = max(len(self) - most, 0)
        if dropped:
            self._queue, self._is_stored = self._queue[: len(self._queue) - dropped], False
        return dropped

    def take(self, count: int) -> Cases:
        """Up to `count` cases to run."""
        start, self._taken = self._taken, min(self._taken + count, len(self._queue))
        return self._queue[start : self._taken]

    def state(self) -> dict[str, NDArray[Any]]:
        """As arrays: what has changed since the last call. The queue itself only if something came in."""
        state = {"taken": np.array([self._taken])} if self._sources else {}
        if not self._is_stored:
            senders = [[source.instance, source.name, source.batches_read] for source in self._sources]
            text = np.frombuffer(json.dumps(senders).encode(), np.uint8)
            state |= {"senders": text, **self._queue.state("queue.")}
            self._is_stored = True
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from all arrays that `state` gave, the latest of each name."""
        if "senders" in state:
            self._sources = [Source(*values) for values in json.loads(state["senders"].tobytes())]
            queue, self._taken = Cases.from_state(state, "queue.", self.dimensions), int(state["taken"][0])
            self._queue = storable(queue)
            if len(self._queue) < len(queue):
                self._queue, self._taken, self._is_stored = storable(queue[self._taken :]), 0, False


def import_share(position: int, count: int) -> int:
    """How many of the `count` cases that follow the first `position` may be imports."""
    return (position + count) // _CASES_PER_IMPORT - position // _CASES_PER_IMPORT


def storable(cases: Cases) -> Cases:
    """`cases` without imports that cannot be stored, which earlier versions have let in.

    Such a case ends a campaign when its batch is stored, and again whenever it is resumed.
    """
    is_bad_import = (cases.purposes == Purpose.IMPORT) & ~is_storable(cases.inputs, cases.seeds)
    return cases[~is_bad_import] if is_bad_import.any() else cases
