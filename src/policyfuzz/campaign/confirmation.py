"""Findings are run once more, among other neighbours, before they count."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.records import CONFIRMED, FLAKY, Finding
from policyfuzz.rollout import Executions
from policyfuzz.search.cases import Cases, Purpose


@dataclass(slots=True)
class Confirmations:
    """Findings that wait for their second run."""

    dimensions: int
    _waiting: Cases = field(init=False)  #: `parents` are finding numbers
    _expected: dict[int, tuple[float, int]] = field(init=False, default_factory=dict)  #: return and step

    def __post_init__(self) -> None:
        self._waiting = Cases.none(self.dimensions)

    def __len__(self) -> int:
        """Findings without a verdict, waiting or being run."""
        return len(self._expected)

    @property
    def waiting(self) -> int:
        """Findings that have not been given out to run."""
        return len(self._waiting)

    def add(self, findings: list[Finding]) -> None:
        """Have `findings` run again."""
        if not findings:
            return
        new = Cases(
            np.array([finding.input for finding in findings]),
            np.array([finding.case_seed for finding in findings], np.uint64),
            np.array([finding.id for finding in findings], np.int64),
            np.full(len(findings), int(Purpose.CONFIRM), np.int64),
        )
        self._waiting = Cases.concatenate([self._waiting, new])
        self._expected |= {finding.id: (finding.episode_return, finding.crash_step) for finding in findings}

    def take(self, count: int) -> Cases:
        """Up to `count` cases to run."""
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def judge(self, cases: Cases, executions: Executions) -> list[tuple[int, str]]:
        """Status of each finding whose second run this was: confirmed if nothing at all differs."""
        verdicts = []
        runs = zip(
            cases.parents.tolist(),
            executions.returns.tolist(),
            executions.verdicts.steps.tolist(),
            strict=True,
        )
        for number, episode_return, step in runs:
            same = self._expected.pop(number) == (episode_return, step)
            verdicts.append((number, CONFIRMED if same else FLAKY))
        return verdicts

    def state(self) -> dict[str, NDArray[Any]]:
        """As arrays: the cases that wait, and what is expected of them and of those being run."""
        numbers = sorted(self._expected)
        return {
            **cases_state(self._waiting, "waiting."),
            "numbers": np.array(numbers, np.int64),
            "returns": np.array([self._expected[number][0] for number in numbers]),
            "steps": np.array([self._expected[number][1] for number in numbers], np.int64),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a `state`."""
        self._waiting = cases_from_state(state, "waiting.")
        numbers, returns, steps = (state[name].tolist() for name in ("numbers", "returns", "steps"))
        self._expected = dict(zip(numbers, zip(returns, steps, strict=True), strict=True))


def cases_state(cases: Cases, prefix: str) -> dict[str, NDArray[Any]]:
    """`cases` as arrays whose names start with `prefix`."""
    return {
        f"{prefix}inputs": cases.inputs,
        f"{prefix}seeds": cases.seeds,
        f"{prefix}parents": cases.parents,
        f"{prefix}purposes": cases.purposes,
    }


def cases_from_state(state: Mapping[str, NDArray[Any]], prefix: str) -> Cases:
    """The cases that `cases_state` turned into arrays."""
    return Cases(*(state[f"{prefix}{name}"] for name in ("inputs", "seeds", "parents", "purposes")))
