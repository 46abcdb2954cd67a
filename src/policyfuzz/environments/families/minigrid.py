"""MiniGrid: which of its layouts, and where in it the agent starts and looks."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import Choice, InputSpace, Integer, Seed, UniformMap
from policyfuzz.environments.starts import FirstObservation, Reset, Values

#: Layouts are the seeds of its own reset up to this one: enough to vary, few enough to know them all.
_LAYOUTS = 1000
#: Chance that a perturbation draws another layout, in which the cell means nothing. Perturbations that change
#: nothing are drawn again, so one in ten of those that count does.
_OTHER_LAYOUT = 0.03
_DIRECTIONS = ("right", "down", "left", "up")
#: What may have to be moved or opened on the way to a goal.
_MOVABLE = frozenset({"door", "key", "ball", "box"})


@dataclass(frozen=True, slots=True)
class Layout:
    """What one layout allows, as (width, height) tables of cells."""

    free: NDArray[np.bool_]  #: True where the agent may start: it could have walked there
    arrives: NDArray[np.bool_]  #: True where a goal can be walked to
    is_open: bool  #: True where there is a goal and nothing that can be moved or opened


class Layouts:
    """The layouts of an environment, looked at one by one in a copy of it, each of them once."""

    def __init__(self, env: Any) -> None:
        self._env = copy.deepcopy(env)
        self._env.render_mode = None
        self._seen: dict[int, Layout] = {}

    def __getitem__(self, layout: int) -> Layout:
        if layout not in self._seen:
            # the method of the class: on the object it may be replaced by one that starts from an input
            type(self._env).reset(self._env, seed=layout)
            self._seen[layout] = look_at(self._env)
        return self._seen[layout]


@dataclass(frozen=True, slots=True)
class AgentStart:
    """Layout, column, row, direction. The seed feeds what moves by itself, such as obstacles."""

    width: int
    height: int
    layouts: Layouts
    is_open: bool  #: True where the way to the goal can be found by walking

    way: ClassVar[str] = "state"
    label: ClassVar[str] = "layout (a seed: a changed one is a fresh draw), start cell and direction"
    oracle: ClassVar[str | None] = "return<=0"  # only arriving is rewarded

    @property
    def inputs(self) -> InputSpace:
        dimensions = (
            Seed("layout", 0, _LAYOUTS - 1, change=_OTHER_LAYOUT),
            Integer("column", 1, self.width - 2),
            Integer("row", 1, self.height - 2),
            Choice("direction", _DIRECTIONS),
        )
        uniform_map = UniformMap(3, self._from_uniform)
        return InputSpace(dimensions, constraint=self._is_free, sampler=self._draw, uniform_map=uniform_map)

    @property
    def solvable(self) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None:
        """(n, d) -> (n,) True where the agent can walk to a goal; None where more than walking is needed."""
        return self._arrives if self.is_open else None

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        from gymnasium.utils import seeding

        layout, column, row, direction = (int(value) for value in values)
        _, info = reset(seed=layout)
        env.np_random = seeding.np_random(seed)[0]
        env.agent_pos, env.agent_dir = (column, row), direction
        return env.gen_obs(), info

    def read(self, env: Any) -> NDArray[np.float64]:
        column, row = env.agent_pos
        return np.array([np.nan, column, row, env.agent_dir], np.float64)  # a grid does not tell its seed

    def _draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """(count, 4) any layout, any free cell of it, any direction."""
        drawn = np.zeros((count, 4))
        drawn[:, 0] = rng.integers(0, _LAYOUTS, count)
        drawn[:, 3] = rng.integers(0, len(_DIRECTIONS), count)
        self._choose_cells(drawn, rng.random(count))
        return drawn

    def _from_uniform(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 4) as `_draw` draws them, from uniform numbers (n, 3) for layout, cell and direction."""
        drawn = np.zeros((len(uniform), 4))
        for place, column, options in ((0, 0, _LAYOUTS), (3, 2, len(_DIRECTIONS))):
            drawn[:, place] = np.minimum(np.floor(uniform[:, column] * options), options - 1)
        self._choose_cells(drawn, uniform[:, 1])
        return drawn

    def _choose_cells(self, drawn: NDArray[np.float64], chances: NDArray[np.float64]) -> None:
        """Write into `drawn` (n, 4) a free cell of each layout, which `chances` (n,) in [0, 1] choose."""
        for row, chance in zip(drawn, chances, strict=True):
            cells = np.argwhere(self.layouts[int(row[0])].free)
            row[1:3] = cells[min(int(chance * len(cells)), len(cells) - 1)] if len(cells) else 0

    def _is_free(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._look_up(inputs, lambda layout: layout.free)

    def _arrives(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        return self._look_up(inputs, lambda layout: layout.arrives | (not layout.is_open))

    def _look_up(
        self, inputs: NDArray[np.float64], table: Callable[[Layout], NDArray[np.bool_]]
    ) -> NDArray[np.bool_]:
        sizes = np.array([2**31, self.width, self.height])
        inside = np.all((inputs[:, :3] >= 0) & (inputs[:, :3] < sizes), axis=1)
        found = np.zeros(len(inputs), np.bool_)
        for place in np.flatnonzero(inside).tolist():
            layout, column, row = (int(value) for value in inputs[place, :3])
            found[place] = table(self.layouts[layout])[column, row]
        return found


def find(env: Any) -> AgentStart | None:
    """How to start `env`, unless what its agent is told to do depends on where it starts (BabyAI)."""
    if not hasattr(env, "agent_pos") or hasattr(env, "instrs") or _is_babyai(env):
        return None
    layouts = Layouts(env)
    is_open = all(layouts[number].is_open for number in range(5))
    return AgentStart(env.width, env.height, layouts, is_open)


def _is_babyai(env: Any) -> bool:
    return any(cls.__name__ == "RoomGridLevel" for cls in type(env).__mro__)


def look_at(env: Any) -> Layout:
    """The layout that `env` was last reset to."""
    kinds = np.full((env.width, env.height), "", dtype=object)
    passable = np.zeros((env.width, env.height), np.bool_)
    for column, row in np.ndindex(env.width, env.height):
        thing = env.grid.get(column, row)
        kinds[column, row] = "" if thing is None else thing.type
        passable[column, row] = thing is None or thing.type == "floor"  # not a door: it may lead nowhere
    for end in (getattr(env, "success_pos", None), getattr(env, "failure_pos", None)):
        if end is not None:
            passable[tuple(end)] = False  # entering it ends the episode, as a goal does
    start = (int(env.agent_pos[0]), int(env.agent_pos[1]))
    walked = flood(passable, [start])
    goals = [(int(column), int(row)) for column, row in np.argwhere(kinds == "goal")]
    is_open = bool(goals) and not _MOVABLE & set(kinds.ravel())
    beside = [cell for goal in goals for cell in _neighbours(goal) if _inside(cell, passable)]
    arrives = flood(passable, [cell for cell in beside if passable[cell]])
    return Layout(walked & passable, arrives, is_open)


def flood(passable: NDArray[np.bool_], starts: list[tuple[int, int]]) -> NDArray[np.bool_]:
    """Table like `passable`, True for `starts` and every passable cell that can be walked to from them."""
    reached = np.zeros_like(passable)
    waiting = list(starts)
    for cell in waiting:
        reached[cell] = True
    while waiting:
        for cell in _neighbours(waiting.pop()):
            if _inside(cell, passable) and passable[cell] and not reached[cell]:
                reached[cell] = True
                waiting.append(cell)
    return reached


def _neighbours(cell: tuple[int, int]) -> Iterator[tuple[int, int]]:
    column, row = cell
    yield from ((column + 1, row), (column - 1, row), (column, row + 1), (column, row - 1))


def _inside(cell: tuple[int, int], table: NDArray[np.bool_]) -> bool:
    width, height = table.shape
    return bool(0 <= cell[0] < width and 0 <= cell[1] < height)
