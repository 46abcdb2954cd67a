"""Environments and policies that are objects of this process: classes, functions, models."""

import hashlib
import inspect
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from policyfuzz.core.errors import PolicyError, UsageError, blamed_on
from policyfuzz.core.interfaces import Policy
from policyfuzz.core.target import IN_MEMORY, SOURCE_ONLY, MakeRunner, Target
from policyfuzz.environments.gymnasium import gym_target, limited
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.python import maker
from policyfuzz.policies.python_calls import FunctionPolicy, is_protocol
from policyfuzz.policies.uri import load_policy


def live_target(
    environment: "LiveEnvironment",
    options: Mapping[str, str],
    policy: Any,
    trust: bool,
    make_runner: MakeRunner,
) -> Target:
    """The target of an environment of this process; `policy` is a URI or an object."""
    if policy is None:
        raise UsageError(
            "no policy was given", 'name one: policy="sb3:model.zip", or give a model or function'
        )
    name = f"{IN_MEMORY}:{environment.name}"
    return gym_target(name, environment, options, policy, trust, make_runner)


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

    A function may also make a target, which is returned unchanged.
    """
    import gymnasium

    if isinstance(thing, gymnasium.Env):
        return LiveEnvironment(type(thing.unwrapped).__name__, _made_like(thing), horizon)
    if not callable(thing):
        raise UsageError(
            f"cannot fuzz a {type(thing).__name__}",
            "give the name of a target, a policyfuzz.Target, a class of environments, or a function that"
            " makes one: lambda: gymnasium.make('CartPole-v1')",
        )
    if inspect.isclass(thing):
        return LiveEnvironment(thing.__name__, _made_from(thing), horizon)
    with blamed_on("the function that makes the environment"):
        first = thing()
    if isinstance(first, Target):
        return first
    base = getattr(first, "unwrapped", first)
    if isinstance(first, gymnasium.Env):
        first.close()
    return LiveEnvironment(type(base).__name__, thing, horizon)


def _made_from(kind: Any) -> Callable[[], Any]:
    """Makes objects of `kind` that can be filmed, if it has a way to say so."""
    modes = (getattr(kind, "metadata", None) or {}).get("render_modes", ())
    takes_mode = "render_mode" in inspect.signature(kind).parameters
    return (lambda: kind(render_mode="rgb_array")) if takes_mode and "rgb_array" in modes else kind


def _made_like(env: Any) -> Callable[[], Any]:
    """Makes environments like `env`, which is not used itself: a batch needs many of them."""
    import gymnasium

    spec = env.spec
    if spec is None:
        raise UsageError(
            f"one {type(env.unwrapped).__name__} is not enough: a batch of episodes needs many",
            "give the class or a function that makes one: lambda: MyEnv(...)",
        )
    return lambda: gymnasium.make(spec, disable_env_checker=True)


def live_policy(policy: Any, spaces: Spaces) -> LoadedPolicy:
    """`policy`, a model of stable-baselines3 or what `py:` takes, after a trial in `spaces`."""
    if isinstance(policy, Mapping):
        raise PolicyError(
            f"policies were given for {', '.join(map(str, policy))}, and this environment has one agent",
            "a dictionary of policies is for the agents of a pettingzoo: environment",
        )
    name = label(policy)
    if _is_a(policy, "stable_baselines3.common.base_class", "BaseAlgorithm"):
        return replace(_saved_and_loaded(policy, spaces), name=name, uri=name)
    # a policy of stable-baselines3 is a network as well, whose forward pass draws random actions
    is_sb3 = _is_a(policy, "stable_baselines3.common.policies", "BasePolicy")
    with blamed_on(f"policy {name}"):
        make, notes = maker(policy.predict if is_sb3 else policy, spaces, name, None)
    return LoadedPolicy(make, name, name, digest(policy), notes=notes)


def plain_policy(policy: Any) -> Callable[[], Policy]:
    """Makes `policy` for a target that knows no spaces: an object with begin and act, or a function."""
    if is_protocol(policy):
        make: Any = policy if inspect.isclass(policy) else lambda: policy
        return cast(Callable[[], Policy], make)
    if inspect.isroutine(policy):
        return lambda: FunctionPolicy(policy)
    raise PolicyError(
        f"this target cannot be given a {type(policy).__name__} as its policy",
        "expected an object with begin(count) and act(observations, rows), or a function from observations"
        " (m, ...) to actions (m, ...)",
    )


def label(policy: Any) -> str:
    """What to call `policy`, for a reader."""
    name = getattr(policy, "__qualname__", None) or type(policy).__qualname__
    return f"{IN_MEMORY}:{name.replace('<', '').replace('>', '').rpartition('.')[2]}"


def digest(policy: Any) -> str:
    """SHA-256 of what `policy` is made of: its weights, or its source; empty if neither is available.

    The source of a class says nothing about an object's values, nor that of a function about its closure:
    then it begins with SOURCE_ONLY.
    """
    weights = getattr(policy, "state_dict", None)
    if callable(weights):
        parts = [_bytes(name, tensor) for name, tensor in weights().items()]
        return hashlib.sha256(b"".join(parts)).hexdigest()
    is_code = inspect.isroutine(policy) or inspect.isclass(policy)
    tells_all = (inspect.isfunction(policy) and not policy.__closure__) or inspect.isclass(policy)
    try:
        source = inspect.getsource(policy if is_code else type(policy))
    except (OSError, TypeError):
        return ""
    return ("" if tells_all else SOURCE_ONLY) + hashlib.sha256(source.encode()).hexdigest()


def _bytes(name: str, value: Any) -> bytes:
    """`value`, a tensor or something else that a network keeps, as bytes."""
    is_tensor = hasattr(value, "detach")
    content: bytes = value.detach().cpu().numpy().tobytes() if is_tensor else repr(value).encode()
    return name.encode() + content


def _saved_and_loaded(model: Any, spaces: Spaces) -> LoadedPolicy:
    """`model` as it would be loaded from a file, with the normalisation of its environment if it has one."""
    with tempfile.TemporaryDirectory() as folder:
        zip_file, statistics = Path(folder) / "model.zip", Path(folder) / "vecnormalize.pkl"
        model.save(zip_file)
        normaliser = model.get_vec_normalize_env()
        if normaliser is not None:
            normaliser.save(str(statistics))
        normalize = "none" if normaliser is None else str(statistics)
        loaded = load_policy(f"sb3:{zip_file}?normalize={normalize}", spaces, trust=True)
    # the zip holds the time at which it was written
    return replace(loaded, sha256=digest(model.policy))


def _is_a(thing: Any, module: str, name: str) -> bool:
    """True where a class of `thing` has this name; its package is not imported to find out."""
    return any((kind.__module__, kind.__qualname__) == (module, name) for kind in type(thing).__mro__)
