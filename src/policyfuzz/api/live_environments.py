"""Environments that exist in this process only: classes, functions and objects of Gymnasium."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from policyfuzz.errors import UsageError, blamed_on
from policyfuzz.target import Target
from policyfuzz.targets.gym.environment import limited


@dataclass(frozen=True, slots=True)
class LiveEnvironment:
    """How to make one environment object."""

    name: str  #: for a reader
    make: Callable[[], Any]
    horizon: int | None  #: steps of an episode, instead of the environment's own limit

    def __call__(self) -> Any:
        """A new environment object."""
        import gymnasium

        with blamed_on(f"environment {self.name}"):
            env = self.make()
        if not isinstance(env, gymnasium.Env):
            raise UsageError(
                f"{self.name} gave {type(env).__name__}, expected a gymnasium.Env or a policyfuzz.Target",
                "give a class, or a function without parameters: lambda: gymnasium.make('CartPole-v1')",
            )
        return env if self.horizon is None else limited(env, self.horizon)


def live_environment(thing: Any, horizon: int | None) -> LiveEnvironment | Target:
    """`thing`, a class, function or object of Gymnasium, as something that makes environments.

    A function may make a target as well, which is then given as it is.
    """
    import gymnasium

    if isinstance(thing, gymnasium.Env):
        return LiveEnvironment(type(thing.unwrapped).__name__, _like(thing), horizon)
    if not callable(thing):
        raise UsageError(
            f"cannot fuzz a {type(thing).__name__}",
            "give the name of a target, a policyfuzz.Target, a class of environments, or a function that"
            " makes one: lambda: gymnasium.make('CartPole-v1')",
        )
    if inspect.isclass(thing):
        return LiveEnvironment(thing.__name__, _class(thing), horizon)
    with blamed_on("the function that makes the environment"):
        first = thing()
    if isinstance(first, Target):
        return first
    base = getattr(first, "unwrapped", first)
    if isinstance(first, gymnasium.Env):
        first.close()
    return LiveEnvironment(type(base).__name__, thing, horizon)


def _class(kind: Any) -> Callable[[], Any]:
    """Makes objects of `kind` that can be filmed, if it has a way to say so."""
    modes = (getattr(kind, "metadata", None) or {}).get("render_modes", ())
    takes_mode = "render_mode" in inspect.signature(kind).parameters
    return (lambda: kind(render_mode="rgb_array")) if takes_mode and "rgb_array" in modes else kind


def _like(env: Any) -> Callable[[], Any]:
    """Makes environments like `env`, which is not used itself: a batch needs many of them."""
    import gymnasium

    spec = env.spec
    if spec is None:
        raise UsageError(
            f"one {type(env.unwrapped).__name__} is not enough: a batch of episodes needs many",
            "give the class or a function that makes one: lambda: MyEnv(...)",
        )
    return lambda: gymnasium.make(spec, disable_env_checker=True)
