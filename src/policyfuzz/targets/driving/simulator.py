"""The simulator: one MetaDrive episode at a time."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.extras import load
from policyfuzz.core.interfaces import Frame
from policyfuzz.policies.spaces import checked_actions
from policyfuzz.targets.driving import scenario
from policyfuzz.targets.driving.scenario import clearances, rotated, seen_from

#: What a signal shows once the episode went wrong, less the speed in metres a second at which it happened; it
#: is 0 or more otherwise.
WRONG = -1.0
#: A contact is no crash of the ego vehicle where every vehicle nearer than this, in metres, ...
_TOUCH = 0.3
#: ... has its centre so far behind and no more to the side, so that it met the rear bumper, ...
_BEHIND, _ASIDE = scenario.VEHICLE_LENGTH - 0.5, scenario.VEHICLE_WIDTH
#: ... and the ego vehicle has been in its lane for so many steps.
_SETTLED_STEPS = 20
#: Metres around other vehicles that cost something to be in.
_NEAR = 5.0
#: Metres within which other vehicles are part of the state.
_SIGHT = 50.0


class DrivingSimulator:
    """MetaDrive with the vehicles of an input; actions are steering and throttle in [-1, 1]."""

    signals: ClassVar[tuple[str, ...]] = ("clearance", "road_margin")
    #: As `_state` puts them together; "ahead" and "to the left" as the ego vehicle sees it.
    state_names: ClassVar[tuple[str, ...]] = (
        *("offset in the lane [m]", "heading off the lane [rad]", "speed [m/s]", "turn per step [rad]"),
        *("steering", "throttle", "room to the left side [m]", "room to the right side [m]"),
        *("nearest vehicle ahead [m]", "nearest vehicle to the left [m]"),
        *("nearest vehicle's relative speed ahead [m/s]", "nearest vehicle's relative speed left [m/s]"),
        *("gap to the nearest vehicle [m]", "vehicles in sight", "traffic ahead, mean [m]"),
        *("traffic aside, mean [m]", "traffic's relative speed ahead, mean [m/s]"),
    )
    capacity: ClassVar[int | None] = 1

    def __init__(self) -> None:
        load("metadrive", "metadrive")
        from policyfuzz.targets.driving.engine import environment

        self.environment = environment()
        self._steps_in_lane = 0
        self._lane = -1
        self._speed = 0.0  #: of the ego vehicle before the last step, metres a second
        self.is_struck_from_behind = False
        self._trail: list[NDArray[np.float64]] = []

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        observation = self.environment.start(scenario.scene(inputs[0]), owner=self)
        self._lane, self._steps_in_lane = -1, _SETTLED_STEPS
        self._speed = 0.0
        self.is_struck_from_behind = False
        self._trail = []
        frame = self._frame(observation, 0.0, has_ended=False)
        return replace(frame, rewards=np.zeros(1))  # nothing has been done yet, though others may be near

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        self._check_owner()
        action = checked_actions(actions, 1, ("steering", "throttle"))[0]
        observation, reward, terminated, _, _ = self.environment.step(action)
        return self._frame(observation, reward, has_ended=terminated)

    def render(self, row: int) -> NDArray[np.uint8]:
        """(640, 960, 3) the scene from above, the ego vehicle in the middle of it."""
        self._check_owner()
        return self.environment.road_map().picture(self.poses, self._trail)

    @property
    def poses(self) -> NDArray[np.float64]:
        """(1 + m, 3) x, y and heading of the ego vehicle and of the m others that are still on the road."""
        return self.environment.motion()[0]

    def _check_owner(self) -> None:
        if self.environment.owner is not self:
            raise UsageError(
                "another simulator of this process has started an episode",
                hint="MetaDrive runs one episode per process: finish one before the next",
            )

    def _frame(self, observation: NDArray[np.float32], reward: float, has_ended: bool) -> Frame:
        ego, poses, velocities = self.environment.agent, *self.environment.motion()
        gaps = clearances(poses[0], poses[1:])
        self._trail.append(poses[0, :2])
        self._follow_lane(ego)
        clearance = float(gaps.min(initial=_SIGHT))
        if ego.crash_vehicle or ego.crash_object:
            where = seen_from(poses[0], poses[1:, :2][gaps < _TOUCH])
            self.is_struck_from_behind = self._steps_in_lane >= _SETTLED_STEPS and _are_behind(where)
            clearance = 0.0 if self.is_struck_from_behind else WRONG - self._speed
        margin = (
            WRONG - self._speed if self.environment.is_off_road else max(0.0, self.environment.road_margin)
        )
        self._speed = float(ego.speed)  # a collision takes it away before the next frame
        near = max(0.0, 1.0 - max(clearance, 0.0) / _NEAR)
        return Frame(
            observations=observation[None],
            states=_state(ego, poses, velocities, gaps)[None],
            signals=np.array([[clearance, margin]]),
            rewards=np.array([reward - near]),
            ended=np.array([has_ended]),
        )

    def _follow_lane(self, ego: Any) -> None:
        lane = ego.lane_index[-1]
        self._steps_in_lane = self._steps_in_lane + 1 if lane == self._lane or self._lane < 0 else 0
        self._lane = lane


def _are_behind(where: NDArray[np.float64]) -> bool:
    """True where there are vehicles, `where` (m, 2) ahead and to the left, and all met the rear bumper."""
    ahead, left = where.T
    return len(where) > 0 and bool(((ahead < -_BEHIND) & (np.abs(left) < _ASIDE)).all())


def _state(
    ego: Any, poses: NDArray[np.float64], velocities: NDArray[np.float64], gaps: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(17,) what the density sees: the ego vehicle in its lane, the nearest vehicle, the traffic in sight."""
    along, offset = ego.lane.local_coordinates(ego.position)
    error = np.angle(np.exp(1j * (poses[0, 2] - ego.lane.heading_theta_at(along))))
    before = np.arctan2(ego.last_heading_dir[1], ego.last_heading_dir[0])
    turned = np.angle(np.exp(1j * (poses[0, 2] - before)))
    own = [offset, error, ego.speed, turned, ego.steering, ego.throttle_brake]
    sides = [ego.dist_to_left_side, ego.dist_to_right_side]
    where = seen_from(poses[0], poses[1:, :2])
    moving = rotated(velocities[1:] - velocities[0], -poses[0, 2])
    seen = gaps < _SIGHT
    if not seen.any():
        return np.array([*own, *sides, _SIGHT, 0.0, 0.0, 0.0, _SIGHT, 0.0, 0.0, 0.0, 0.0])
    nearest = int(gaps.argmin())
    crowd = [seen.sum(), where[seen, 0].mean(), np.abs(where[seen, 1]).mean(), moving[seen, 0].mean()]
    return np.array([*own, *sides, *where[nearest], *moving[nearest], gaps[nearest], *crowd])
