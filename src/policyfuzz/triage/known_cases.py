"""Runs cases of a target that is known by its name alone; exported tests call it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Runner
from policyfuzz.targets.registry import load_target
from policyfuzz.targets.trust import require_trust


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How an episode ended."""

    crashes: bool
    kind: str | None  #: of the crash, None without one
    crash_step: int | None
    episode_return: float
    error: str | None  #: why it could not be run to its end; None if it could

    def __str__(self) -> str:
        if self.error is not None and not self.crashes:
            return f"the episode could not be run: {self.error}"
        how = f"{self.kind} at step {self.crash_step}" if self.crashes else "no crash"
        return f"{how}, return {self.episode_return!r}"


class KnownCases:
    """A target with a policy, ready to run cases that were found earlier.

    `named_policy` replaces the `policy` that was recorded: whoever gives it has named it himself. Code that
    only the record names is not run without `trust`.
    """

    def __init__(
        self,
        target: str,
        policy: str | None = None,
        *,
        dimensions: Sequence[str],
        named_policy: str | None = None,
        trust: bool = False,
    ) -> None:
        require_trust("this record of findings", target, None if named_policy else policy, trust)
        loaded = load_target(target, named_policy or policy, trust)
        if loaded.inputs.names != tuple(dimensions):
            raise UsageError(
                f"{loaded.name} has inputs {', '.join(loaded.inputs.names)}; the findings have"
                f" {', '.join(dimensions)}",
                "the target has changed: search it again, and export what is found",
            )
        self._runner = Runner(loaded)

    def run(self, row: Sequence[float], case_seed: int) -> CaseResult:
        """Run the episode of input `row` (d,)."""
        executions = self._runner(np.array([row], np.float64), np.array([case_seed], np.uint64))
        (outcome,), crashes = executions.outcomes, bool(executions.crashed[0])
        error = executions.errors.get(0)
        return CaseResult(
            crashes=crashes,
            kind=self._runner.target.oracle.kinds[outcome.kind] if crashes else None,
            crash_step=outcome.step if crashes else None,
            episode_return=outcome.episode_return,
            error=None if error is None else error.summary,
        )
