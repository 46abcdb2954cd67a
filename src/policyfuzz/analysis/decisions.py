"""Runs episodes and keeps, for every decision, what the policy saw and what went on inside it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.activations import Layer, NoActivations, act_and_activations, flattened
from policyfuzz.core.branches import Branches, RemembersActions
from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.core.interfaces import Policy
from policyfuzz.core.target import Runner, Target


@dataclass(frozen=True, slots=True)
class Decisions:
    """All f decisions of n episodes, episode after episode, each in the order of its steps.

    The decision at step t is taken in state t of its episode and leads to state t + 1.
    """

    executions: Executions  #: of the n episodes; `executions.verdicts.steps` says when each crashed
    episodes: NDArray[np.int64]  #: (f,) row of the episode
    steps: NDArray[np.int64]  #: (f,) from 0
    observations: NDArray[np.float64]  #: (f, o) flattened
    activations: NDArray[np.float32] | None  #: (f, k) in the order of `layers`; None if there are none
    layers: tuple[Layer, ...] = ()
    why_none: str = ""  #: why there are no activations

    @property
    def states(self) -> NDArray[np.float64]:
        """(f, s) the state in which each decision was taken."""
        return self.executions.states[self.episodes, self.steps]


def record_inside(
    target: Target,
    inputs: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    branches: Branches | None = None,
) -> Decisions:
    """Run an episode for each row of `inputs` (n, d) with case seeds (n,), and with its `branches`.

    Episodes are those of any other run, to the last bit. Where a policy has no activations, the result says
    why, and has its observations all the same.
    """
    runner = Runner(replace(target, policy=lambda: ReadingPolicy(target.policy())))
    parts = []
    for start in range(0, max(len(inputs), 1), target.batch_size):
        rows = slice(start, start + target.batch_size)
        some = None if branches is None else branches[rows]
        parts.append(_recorded(runner, inputs[rows], seeds[rows], some))
    return _joined(parts)


class ReadingPolicy:
    """Asks a policy, and keeps what it saw and what went on inside it at every step."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.layers: tuple[Layer, ...] = ()
        self.why_none = ""
        self.forget()

    def forget(self) -> None:
        """Drop all that was kept."""
        self.begun = 0  #: episodes since
        self._first = self._step = 0
        self._kept: list[tuple[NDArray[Any], ...]] = []

    def begin(self, count: int) -> None:
        self._policy.begin(count)
        # a simulator that cannot hold all episodes at once gets some after the others
        self._first, self._step = self.begun, 0
        self.begun += count

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        actions, inside = self._act(observations, rows)
        steps = np.full(len(rows), self._step, np.int64)
        self._kept.append((rows + self._first, steps, flattened(observations), inside))
        self._step += 1
        return actions

    def executed(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> None:
        if isinstance(self._policy, RemembersActions):
            self._policy.executed(actions, rows)

    def decisions(self, executions: Executions) -> Decisions:
        """All that was kept, of episodes that came out as `executions`."""
        if self._kept:
            episodes, steps, seen, inside = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        else:  # no episode got as far as its first decision
            episodes, steps = np.empty((2, 0), np.int64)
            seen, inside = np.empty((2, 0, 0))
        order = np.lexsort((steps, episodes))
        activations = None if self.why_none else inside[order].astype(np.float32)
        return Decisions(
            executions, episodes[order], steps[order], seen[order], activations, self.layers, self.why_none
        )

    def _act(
        self, observations: NDArray[Any], rows: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        if not self.why_none:
            try:
                actions, found = act_and_activations(self._policy, observations, rows)
            except NoActivations as error:
                self.why_none = error.message
            else:
                self.layers = found.layers
                return actions, found.values.astype(np.float32)
        return self._policy.act(observations, rows), np.empty((len(rows), 0), np.float32)


def _recorded(
    runner: Runner, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], branches: Branches | None
) -> Decisions:
    policy = runner.policy
    assert isinstance(policy, ReadingPolicy)
    policy.forget()
    executions = runner(inputs, seeds, branches=branches)
    if policy.begun == len(inputs) or len(inputs) == 1:
        return policy.decisions(executions)
    # the simulator raised, and the runner began again with each episode alone
    rows = (slice(row, row + 1) for row in range(len(inputs)))
    return _joined(
        [
            _recorded(runner, inputs[row], seeds[row], None if branches is None else branches[row])
            for row in rows
        ]
    )


def _joined(parts: Sequence[Decisions]) -> Decisions:
    """All decisions of `parts`, one after another."""
    starts = np.cumsum([0, *(len(part.executions) for part in parts)]).tolist()
    some = [part for part in parts if len(part.steps)] or list(parts[:1])
    read = [part.activations for part in some if part.activations is not None]
    return Decisions(
        concatenate([part.executions for part in parts]),
        np.concatenate([part.episodes + start for start, part in zip(starts, parts, strict=False)]),
        np.concatenate([part.steps for part in parts]),
        np.concatenate([part.observations for part in some]),
        np.concatenate(read) if len(read) == len(some) else None,
        some[0].layers,
        some[0].why_none,
    )
