"""The state of a MuJoCo model as named numbers: joint positions, turns of free bodies, and velocities."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from policyfuzz.core.inputs import Real

#: Half-widths of the disturbance: metres and radians, and those per second. The environments' own noise is
#: 0.005 to 0.1; this is a shove that a controller should survive.
_POSITION, _VELOCITY = 0.1, 0.5
_FREE, _BALL, _SLIDE = 0, 1, 2  #: types of joints in MuJoCo; the fourth is a hinge
_JOINT_TRANSMISSIONS = (0, 1)
_AXES = "xyz"


class Part(Enum):
    """What of the state a number is."""

    POSITION = "position"
    TURN = "turn"  #: one component of a rotation vector from the initial orientation
    VELOCITY = "velocity"


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One number of an input and where it belongs."""

    dimension: Real
    part: Part
    address: int  #: in qpos or qvel; of a turn, where the quaternion begins
    axis: int = 0  #: of a turn


def coordinates(env: Any, own_ranges: Mapping[str, tuple[float, float] | None]) -> tuple[Coordinate, ...]:
    """The numbers that a start of `env` may choose.

    `own_ranges` by joint hold where the environment itself puts things; None leaves a joint out.
    """
    noise = float(getattr(env, "_reset_noise_scale", 0.0))
    layout = _Layout(env, _names(env.model), max(noise, _POSITION), max(noise, _VELOCITY), own_ranges)
    joints = range(env.model.njnt)
    return tuple(
        [part for joint in joints for part in layout.positions(joint)]
        + [part for joint in joints for part in layout.velocities(joint)]
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    env: Any
    names: list[str]  #: of the joints
    position: float
    velocity: float
    own_ranges: Mapping[str, tuple[float, float] | None]

    def positions(self, joint: int) -> Iterator[Coordinate]:
        model, name = self.env.model, self.names[joint]
        kind, address = int(model.jnt_type[joint]), int(model.jnt_qposadr[joint])
        if kind == _FREE:
            for axis in range(3):
                if axis == 2 or not self._is_place_hidden:
                    yield self._position(f"{name} {_AXES[axis]}", "m", address + axis)
            yield from self._turns(name, address + 3)
        elif kind == _BALL:
            yield from self._turns(name, address)
        elif self.own_ranges.get(name, ()) is not None and not self._is_hidden_place(joint):
            yield self._joint_position(joint, name, "m" if kind == _SLIDE else "rad", address)

    def velocities(self, joint: int) -> Iterator[Coordinate]:
        model, name = self.env.model, self.names[joint]
        if not _is_driven(model, joint):
            return
        kind, address = int(model.jnt_type[joint]), int(model.jnt_dofadr[joint])
        if kind == _FREE:
            for axis in range(3):
                yield self._velocity(f"{name} velocity {_AXES[axis]}", "m/s", address + axis)
            yield from self._spins(name, address + 3)
        elif kind == _BALL:
            yield from self._spins(name, address)
        else:
            yield self._velocity(f"{name} velocity", "m/s" if kind == _SLIDE else "rad/s", address)

    def _turns(self, name: str, address: int) -> Iterator[Coordinate]:
        for axis in range(3):
            turn = Real(f"{name} turn {_AXES[axis]}", -self.position, self.position, "rad")
            yield Coordinate(turn, Part.TURN, address, axis)

    def _spins(self, name: str, address: int) -> Iterator[Coordinate]:
        for axis in range(3):
            yield self._velocity(f"{name} spin {_AXES[axis]}", "rad/s", address + axis)

    def _position(self, name: str, unit: str, address: int) -> Coordinate:
        initial = float(self.env.init_qpos[address])
        low, high = initial - self.position, initial + self.position
        return Coordinate(Real(name, low, high, unit), Part.POSITION, address)

    def _joint_position(self, joint: int, name: str, unit: str, address: int) -> Coordinate:
        initial, model = float(self.env.init_qpos[address]), self.env.model
        low, high = self.own_ranges.get(name) or (initial - self.position, initial + self.position)
        if model.jnt_limited[joint]:
            # some models begin beyond their limits: then not further beyond
            lowest, highest = model.jnt_range[joint]
            low, high = max(low, min(lowest, initial)), min(high, max(highest, initial))
        return Coordinate(Real(name, float(low), float(high), unit), Part.POSITION, address)

    def _velocity(self, name: str, unit: str, address: int) -> Coordinate:
        initial = float(self.env.init_qvel[address])
        low, high = initial - self.velocity, initial + self.velocity
        return Coordinate(Real(name, low, high, unit), Part.VELOCITY, address)

    @property
    def _is_place_hidden(self) -> bool:
        """True where the environment says that observations, and so rewards, do not tell places apart."""
        return bool(getattr(self.env, "_exclude_current_positions_from_observation", False))

    def _is_hidden_place(self, joint: int) -> bool:
        """True for the way of a root along the ground."""
        model = self.env.model
        is_root = model.body_parentid[model.jnt_bodyid[joint]] == 0
        is_level = model.jnt_type[joint] == _SLIDE and abs(model.jnt_axis[joint][2]) < 1e-9
        return bool(self._is_place_hidden and is_root and is_level and not model.jnt_limited[joint])


def _names(model: Any) -> list[str]:
    """Names of the joints as the model gives them, or their numbers; no two alike."""
    names: list[str] = []
    for joint in range(model.njnt):
        name = str(model.joint(joint).name) or f"joint{joint}"
        is_taken = name.lower() in (other.lower() for other in names)
        names.append(f"{name} {joint}" if is_taken else name)
    return names


def _is_driven(model: Any, joint: int) -> bool:
    """True where an actuator moves the body or one that it hangs on to; other things begin at rest."""
    roots = set()
    for kind, (moved, _) in zip(model.actuator_trntype, model.actuator_trnid, strict=True):
        if kind not in _JOINT_TRANSMISSIONS:
            return True
        roots.add(int(model.body_rootid[model.jnt_bodyid[moved]]))
    return int(model.body_rootid[model.jnt_bodyid[joint]]) in roots
