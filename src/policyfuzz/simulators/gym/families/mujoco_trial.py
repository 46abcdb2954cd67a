"""Whether a state is one to start from, tried out on a copy of the environment that nobody else uses."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.simulators.gym.families.own_reset import overridden
from policyfuzz.simulators.gym.start import FirstObservation

#: Bodies may overlap by this much more than in the initial pose, in metres: MuJoCo's contacts are soft, and
#: feet stand a little in the ground.
_DEPTH = 0.01
#: A window, and a method that may have been replaced on the object.
_NOT_COPIED = ("mujoco_renderer", "reset")

Values = NDArray[np.float64]


def begin_at(
    env: Any, reset: Callable[..., FirstObservation], qpos: Values, qvel: Values, seed: int
) -> tuple[FirstObservation, bool]:
    """What the environment's own `reset` gives when it sets this state, and whether it has set any.

    It does so once, and before the first observation: MuJoCo's solvers go on from what they found last.
    """
    own, calls = type(env), []

    def set_state(env: Any, *drawn: Any, **named: Any) -> None:
        calls.append((drawn, named))
        own.set_state(env, qpos, qvel)

    with overridden(env, set_state=set_state):
        first = reset(seed=seed)
    return first, bool(calls)


@dataclass(frozen=True, slots=True)
class Trial:
    """A private copy of an environment, and how deep its bodies overlap in the initial pose."""

    env: Any
    idle: NDArray[Any] | None  #: the action of doing nothing; None where nobody knows which that is
    deepest: float

    @classmethod
    def of(cls, env: Any) -> "Trial | None":
        """A trial for `env`; None where its reset does not set the state, or does not work."""
        private = _private_copy(env)
        try:
            _, is_set = begin_at(private, private.reset, env.init_qpos.copy(), env.init_qvel.copy(), 0)
        except Exception:  # whatever it is, episodes will show it
            return None
        return cls(private, _idle_action(env), _overlap(private.data)) if is_set else None

    def is_start(self, qpos: Values, qvel: Values) -> bool:
        """True where nothing overlaps too much and the episode is not over after a step of doing nothing."""
        env = self.env
        try:
            begin_at(env, env.reset, qpos, qvel, 0)
            if _overlap(env.data) > self.deepest + _DEPTH:
                return False
            return self.idle is None or not env.step(self.idle)[2]
        except Exception:  # an environment that fails is for an episode to show
            return True


def _overlap(data: Any) -> float:
    """Depth of the deepest contact, in metres."""
    return max(0.0, -float(data.contact.dist.min())) if data.ncon else 0.0


def _idle_action(env: Any) -> NDArray[Any] | None:
    space = env.action_space
    if not hasattr(space, "low"):
        return None
    return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)


def _private_copy(env: Any) -> Any:
    """An environment with model, data and everything else of its own, but no window."""
    private = object.__new__(type(env))
    memo = {id(env): private}
    for name, value in vars(env).items():
        if name not in _NOT_COPIED:
            vars(private)[name] = _copied(value, memo)
    private.mujoco_renderer = private.render_mode = None
    return private


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # locks, windows, handles of other programs: nothing that a trial changes
        return value
