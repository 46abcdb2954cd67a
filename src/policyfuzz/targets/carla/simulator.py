"""The simulator: one episode at a time on a CARLA server, reached at the first reset."""

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.interfaces import Frame
from policyfuzz.policies.spaces import checked_actions
from policyfuzz.targets.carla.drive import CRASH_IMPULSE, STATE, Motion, reward, state
from policyfuzz.targets.carla.roads import TURNS, RoadMap, Route, plan
from policyfuzz.targets.carla.server import Server, Settings, connect
from policyfuzz.targets.carla.stage import TICK_SECONDS, Stage
from policyfuzz.targets.carla.traffic import EGO_COLUMNS, poses_of

#: Routes are long enough for this speed, in metres per second.
_FASTEST = 25.0
#: An episode is over this near to the end of its route.
_ARRIVAL_METRES = 2.0
#: Lowest and highest throttle, steer and brake.
_LOWEST, _HIGHEST = np.array([0.0, -1.0, 0.0]), np.array([1.0, 1.0, 1.0])


class CarlaSimulator:
    """Actions are (throttle, steer, brake); observations are states, with pictures if there is a camera."""

    signals: ClassVar[tuple[str, ...]] = ("impulse_margin", "crossed_markings", "speed", "refused")
    capacity: ClassVar[int | None] = 1

    def __init__(
        self,
        settings: Settings,
        roads: RoadMap,
        drives_itself: bool = False,
        reach: Callable[[Settings], Server] = connect,
    ) -> None:
        self._settings = settings
        self._roads = roads
        self._drives_itself = drives_itself
        self._reach = reach
        self._stage: Stage | None = None
        self._route: Route
        self._mark = self._speed = 0.0

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        if len(inputs) == 0:
            return self._frames([])
        return self._or_close(lambda: self._begin(inputs, int(seeds[0])))

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        return self._or_close(lambda: self._advance(_control(actions)))

    def close(self) -> None:
        """Leave the server as it was found; the next reset reaches for it again."""
        if self._stage is not None:
            self._stage.close()
            self._stage = None

    def _or_close(self, act: Callable[[], Frame]) -> Frame:
        """What `act` gives. If anything goes wrong, Ctrl-C included, no actor is left on the server."""
        try:
            return act()
        except BaseException:
            self.close()
            raise

    def _begin(self, inputs: NDArray[np.float64], seed: int) -> Frame:
        poses = poses_of(inputs)[0]
        turn = TURNS[int(inputs[0, EGO_COLUMNS - 1])]
        metres = self._settings.horizon * TICK_SECONDS * _FASTEST
        self._route = plan(self._roads, poses[0, :2], turn, metres)
        heights = [self._roads.height(*pose[:2]) for pose in poses]
        places = np.insert(poses, 2, heights, axis=1)
        stage = self._opened()
        stage.set_up(places, seed)
        ego = stage.ego if stage.has_ego else Motion.at_rest(places[0])
        self._mark = self._route.mark_of(ego.position[:2], 0.0)
        self._speed = ego.speed
        return self._frame(ego, 0.0, np.array([CRASH_IMPULSE, 0.0]), is_over=not stage.has_ego)

    def _advance(self, control: NDArray[np.float64]) -> Frame:
        stage = self._opened()
        stage.drive(*control.tolist())
        ego, impulse, crossed = stage.ego, stage.impulse(), stage.crossed_markings()
        mark = self._route.mark_of(ego.position[:2], self._mark)
        margin = CRASH_IMPULSE - impulse
        earned = reward(mark - self._mark, ego.speed, self._speed, margin < 0, crossed > 0)
        self._mark, self._speed = mark, ego.speed
        return self._frame(ego, earned, np.array([margin, crossed]), is_over=margin < 0)

    def _opened(self) -> Stage:
        """The stage, opened if it is not."""
        if self._stage is None:
            stage = Stage(self._reach(self._settings), self._drives_itself)
            weakref.finalize(self, stage.close)
            self._stage = stage
            _check_map(stage, self._roads)
        return self._stage

    def _frame(self, ego: Motion, earned: float, events: NDArray[np.float64], is_over: bool) -> Frame:
        stage = self._opened()
        node, command = self._route.ahead(self._mark)
        has_arrived = self._mark >= self._route.length - _ARRIVAL_METRES
        return self._frames(
            [
                (
                    state(ego, node, command, stage.others),
                    np.append(events, [ego.speed, stage.refused]),
                    earned,
                    is_over or has_arrived,
                )
            ]
        )

    def _frames(self, shown: list[tuple[NDArray[np.float64], NDArray[np.float64], float, bool]]) -> Frame:
        """The frame of m = 0 or 1 episodes."""
        states = np.array([one[0] for one in shown]).reshape(-1, len(STATE))
        return Frame(
            observations=self._observe(states),
            states=states,
            signals=np.array([one[1] for one in shown]).reshape(-1, len(self.signals)),
            rewards=np.array([one[2] for one in shown], np.float64),
            ended=np.array([one[3] for one in shown], np.bool_),
        )

    def _observe(self, states: NDArray[np.float64]) -> NDArray[Any]:
        """What the policy sees of `states` (m, 17): the same, and pictures if there is a camera."""
        if self._settings.camera is None:
            return states
        width, height = self._settings.camera
        seen = np.zeros(
            len(states), [("state", np.float64, (len(STATE),)), ("picture", np.uint8, (height, width, 3))]
        )
        seen["state"] = states
        if len(states):
            seen["picture"] = self._opened().picture
        return seen


class FilmedCarlaSimulator(CarlaSimulator):
    """A simulator with a camera, which films what it sees."""

    def render(self, row: int) -> NDArray[np.uint8]:
        """The last picture (height, width, 3) of the camera."""
        return self._opened().picture


def _control(actions: NDArray[Any]) -> NDArray[np.float64]:
    """(3,) throttle, steer and brake of `actions` (1, 3), within their limits."""
    control = checked_actions(actions, 1, ("throttle", "steer", "brake"))[0]
    return np.asarray(np.clip(control, _LOWEST, _HIGHEST))


def _check_map(stage: Stage, roads: RoadMap) -> None:
    """Refuse a server whose map is not the one that inputs were validated on."""
    served, known = stage.opendrive(), roads.map.to_opendrive()
    if "".join(served.split()) != "".join(known.split()):
        raise UsageError(
            "the map file is not the map that the CARLA server plays on",
            hint="give the file of this town and version with carla:map=FILE.xodr, or leave map out",
        )
