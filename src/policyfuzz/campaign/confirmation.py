"""Confirms findings: each is run once more, in another batch, before it counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions, Outcome
from policyfuzz.search.cases import Cases, Purpose
from policyfuzz.store.records import CONFIRMED, FLAKY, Finding


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
    def waiting(self) -> int:
        """Findings that `take` has not given out yet."""
        return len(self._waiting)

    def add(self, findings: list[Finding], outcomes: list[Outcome]) -> None:
        """Queue `findings` for a second run that should have the same `outcomes`."""
        if not findings:
            return
        new = Cases(
            np.array([finding.input for finding in findings]),
            np.array([finding.case_seed for finding in findings], np.uint64),
            np.array([finding.id for finding in findings], np.int64),
            np.full(len(findings), int(Purpose.CONFIRM), np.int64),
        )
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
        """Go on from a `state`."""
        self._waiting = Cases.from_state(state, "waiting.")
        rows = zip(*(state[name].tolist() for name in ("kinds", "steps", "returns")), strict=True)
        self._expected = dict(zip(state["numbers"].tolist(), (Outcome(*row) for row in rows), strict=True))
