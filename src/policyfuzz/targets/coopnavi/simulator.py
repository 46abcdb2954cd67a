"""The vectorised simulator of cooperative navigation."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.interfaces import Frame
from policyfuzz.targets.coopnavi import physics

#: The largest batch whose trails are kept: campaigns should not pay for pictures.
_FILMED = 8


class SpreadSimulator:
    """n worlds at once; actions (m, 3, 5) are the weights of rest, right, left, up and down of each agent.

    Signals: `collisions`, colliding pairs summed over the steps so far; `finished`, 1 from the first step on
    at which every agent has arrived at some landmark; `covered`, landmarks that are covered now; and
    `near misses`, how near pairs came to each other without touching, summed over the steps so far.
    """

    signals: ClassVar[tuple[str, ...]] = ("collisions", "finished", "covered", "near misses")
    #: Of what the first agent sees; the side of the world is 2.
    state_names: ClassVar[tuple[str, ...]] = (
        *("agent 1 velocity x", "agent 1 velocity y", "agent 1 x", "agent 1 y"),
        *(f"landmark {number} from agent 1, {axis}" for number in (1, 2, 3) for axis in "xy"),
        *(f"agent {number} from agent 1, {axis}" for number in (2, 3) for axis in "xy"),
    )
    capacity: ClassVar[int | None] = None

    def __init__(self, *, ends_when_finished: bool = True, position_first: bool = False) -> None:
        self.worlds = np.empty((0, 18))  #: (n, 18) see `physics`
        self._ends_when_finished = ends_when_finished
        self._position_first = position_first
        self._collisions = np.empty(0)
        self._finished = np.empty(0, np.bool_)
        self._near_misses = np.empty(0)
        self._trail: list[NDArray[np.float64]] = []

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self.worlds = physics.start(inputs)
        self._collisions = np.zeros(len(inputs))
        self._finished = np.zeros(len(inputs), np.bool_)
        self._near_misses = np.zeros(len(inputs))
        self._trail = []
        return self._frame(np.arange(len(inputs)), is_start=True)

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        physics.advance(self.worlds, rows, actions, self._position_first)
        return self._frame(rows)

    def render(self, row: int) -> NDArray[np.uint8]:
        """A picture (640, 640, 3) of episode `row`; agents leave trails, unless there are many episodes."""
        from policyfuzz.targets.coopnavi.picture import draw_world

        return draw_world(self.worlds[row], [positions[row] for positions in self._trail])

    def _frame(self, rows: NDArray[np.int64], is_start: bool = False) -> Frame:
        count = len(rows)
        observations = np.empty((count, physics.AGENTS, physics.OBSERVED))
        rewards = np.empty(count)
        colliding, covered, arrived = np.empty((3, count), np.int64)
        physics.observe(self.worlds, rows, observations)
        physics.judge(self.worlds, rows, rewards, colliding, covered, arrived)
        if is_start:
            rewards[:] = 0.0
        else:  # the published code neither counts collisions nor looks for the end before the first step
            self._collisions[rows] += colliding
            self._finished[rows] |= arrived == physics.AGENTS
            nearness = np.empty(count)
            physics.near_misses(self.worlds, rows, nearness)
            self._near_misses[rows] += nearness
        if len(self.worlds) <= _FILMED:
            self._trail.append(self.worlds[:, physics.POSITIONS].copy())
        finished = self._finished[rows]
        return Frame(
            observations=observations,
            states=observations[:, 0, : physics.STATE],
            signals=np.column_stack([self._collisions[rows], finished, covered, self._near_misses[rows]]),
            rewards=rewards,
            ended=finished & self._ends_when_finished,
        )
