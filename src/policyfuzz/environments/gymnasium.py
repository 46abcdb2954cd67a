"""gym: names: registered Gymnasium environments, and classes and functions of the user."""

import importlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from policyfuzz.core import forks
from policyfuzz.core.code_files import absolute_name, import_user_module, load_attribute, load_file
from policyfuzz.core.errors import (
    MissingExtra,
    PolicyFuzzError,
    TargetCodeError,
    UsageError,
    forbid_copies,
    is_interrupt,
)
from policyfuzz.core.extras import install_hint
from policyfuzz.core.target import IN_MEMORY, MakeRunner, Runner, Target, check_options, choice
from policyfuzz.environments.bounds import bounded
from policyfuzz.environments.build import (
    EnvironmentSource,
    MakeEnv,
    build_target,
    environment_arguments,
    frames_per_second,
    horizon_of,
    policy_for,
    wrappers_of,
)
from policyfuzz.environments.find_start import read_changes, unchanged_start
from policyfuzz.environments.gauges import find_gauge
from policyfuzz.environments.nominal import RandomActions
from policyfuzz.environments.spaces import action_space_of
from policyfuzz.policies.loaded import Spaces

_OPTIONS = ("oracle", "input", "bounds", "horizon", "env.", "wrap", "fresh", "infinite", "render", "patience")

#: First part of an environment's name to the package that registers it when it is imported, and our extra.
_REGISTERED_BY = {
    "MiniGrid": ("minigrid", "minigrid"),
    "BabyAI": ("minigrid", "minigrid"),
    "ALE": ("ale_py", ""),
}
#: Missing package, as gymnasium's errors name it, to our extra that installs it.
_EXTRA_FOR = {"box2d": "box2d", "mujoco": "mujoco", "pygame": "gym", "minigrid": "minigrid"}


def make_target(
    environment_id: str,
    options: Mapping[str, str],
    policy: Any,
    trust: bool = False,
    make_runner: MakeRunner = Runner,
) -> Target:
    """The target of the environment called `environment_id`; `policy` is a URI or an object."""
    check_options("gym", options, _OPTIONS)
    place = absolute_name(environment_id)
    environment = Environment(
        place, environment_arguments(options), wrappers_of(options), horizon_of(options)
    )
    is_named = policy is None or isinstance(policy, str)
    name = f"gym:{place}" if is_named else f"{IN_MEMORY}:{environment_id}"
    return gym_target(name, environment, options, policy, trust, make_runner, place)


def gym_target(
    name: str,
    make: MakeEnv,
    options: Mapping[str, str],
    policy: Any,
    trust: bool,
    make_runner: MakeRunner,
    place: str = "",
) -> Target:
    """The target called `name`, without options, of the Gymnasium environments that `make` gives."""
    env = make()
    for space in ("observation_space", "action_space"):
        if getattr(env, space, None) is None:
            raise UsageError(f"{name} has no {space}", "an environment declares both of its spaces")
    changes = read_changes(options.get("input", ""))
    start = bounded(*unchanged_start(env, changes), env.unwrapped, changes, options.get("bounds"))
    source = EnvironmentSource(
        name=name,
        make=make,
        make_for_film=_made_for_film(make, env, options),
        bounded=start,
        limit=_limit(env),
        random_policy=partial(RandomActions, env.action_space),
        film_steps_per_second=frames_per_second(env),
        actions=action_space_of(env.action_space, env),
        place=place,
        gauge=find_gauge(env),
    )
    loaded = policy_for(policy, Spaces(env.observation_space, env.action_space), trust)
    return build_target(source, loaded, options, make_runner)


def _made_for_film(make: MakeEnv, env: Any, options: Mapping[str, str]) -> MakeEnv | None:
    """Makes environments that can be filmed; None if they cannot, or with render=no."""
    if choice(options, "render", ("yes", "no")) == "no":
        return None
    if env.render_mode == "rgb_array":
        return make
    can_render = "rgb_array" in (env.metadata or {}).get("render_modes", ())
    if can_render and isinstance(make, Environment) and "render_mode" not in make.kwargs:
        return replace(make, is_rendered=True)
    return None


def _limit(env: Any) -> int | None:
    """Steps after which the environment ends an episode by itself, None if unknown."""
    layer = env
    while layer is not None:
        limit = getattr(layer, "_max_episode_steps", None)
        if isinstance(limit, int):
            return limit
        layer = getattr(layer, "env", None)
    if env.spec is not None and env.spec.max_episode_steps is not None:
        return int(env.spec.max_episode_steps)
    # MiniGrid counts for itself; BabyAI chooses another limit for every mission
    base = env.unwrapped
    counts = any(cls.__name__ == "MiniGridEnv" for cls in type(base).__mro__)
    return int(base.max_steps) if counts and getattr(base, "fixed_max_steps", True) else None


@dataclass(frozen=True, slots=True)
class Environment:
    """How to make one environment object, with its wrappers."""

    id: str  #: as registered, perhaps after module: or FILE.py:, or module:attribute or FILE.py:attribute
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()  #: module:class, the innermost first
    max_steps: int | None = None  #: instead of the limit that is registered
    is_rendered: bool = False
    #: What `id` and `wrappers` name, if another process has loaded it.
    loaded: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> Any:
        """Other processes may not have the files of the user's code."""
        loaded = self.loaded or self._load_all()
        return Environment, (self.id, self.kwargs, self.wrappers, self.max_steps, self.is_rendered, loaded)

    def __call__(self) -> Any:
        """A new environment object."""
        kwargs = dict(self.kwargs)
        if self.is_rendered:
            kwargs["render_mode"] = "rgb_array"
        process = forks.this_process()
        try:
            env = self._make(kwargs)
            for name in self.wrappers:
                env = self._load(name, "wrapper")(env)
        except PolicyFuzzError:
            raise
        except BaseException as error:  # whatever an environment raises while it is made
            forks.end_copy_of(process)
            if is_interrupt(error):
                raise
            raise self._explained(error) from error
        forbid_copies(process, f"environment {self.id}")
        return env

    def _make(self, kwargs: dict[str, Any]) -> Any:
        import gymnasium

        factory = self._factory()
        if factory is None:
            _hush_mujoco(gymnasium.registry.get(self.id))
            limit = {} if self.max_steps is None else {"max_episode_steps": self.max_steps}
            module, _, name = self.id.rpartition(":")
            registered = name if module.endswith(".py") else self.id
            return gymnasium.make(registered, disable_env_checker=True, **limit, **kwargs)
        env = factory(**kwargs)
        if not isinstance(env, gymnasium.Env):
            raise UsageError(f"{self.id} gave {type(env).__name__}, expected a gymnasium.Env")
        return env if self.max_steps is None else limited(env, self.max_steps)

    def _factory(self) -> Any:
        """The class or function that makes the environment; None if it is registered."""
        import gymnasium

        module, _, name = self.id.rpartition(":")
        if module.endswith(".py"):
            if name.isidentifier():
                return self._load(self.id, "environment")
            if self.id not in self.loaded:
                load_file(Path(module), "environment")  # which registers it
            return None
        self._import_package(module or self.id)
        if name in gymnasium.registry or not module:
            return None
        return self._load(self.id, "environment") if name.isidentifier() else None

    def _load_all(self) -> dict[str, Any]:
        """What `id` and `wrappers` name; of a file that registers the environment, its module."""
        loaded = {place: self._load(place, "wrapper") for place in self.wrappers}
        loaded[self.id] = self._factory()
        file = self.id.rpartition(":")[0]
        if file.endswith(".py") and loaded[self.id] is None:
            loaded[self.id] = load_file(Path(file), "environment")
        return loaded

    def _load(self, place: str, what: str) -> Any:
        return self.loaded[place] if place in self.loaded else load_attribute(place, what)

    def _import_package(self, name: str) -> None:
        """Import the user's module, or the package that registers the environment."""
        if ":" not in self.id:
            package, extra = _REGISTERED_BY.get(name.split("-")[0].split("/")[0], ("", ""))
            if package:
                try:
                    importlib.import_module(package)
                except ModuleNotFoundError as error:
                    hint = install_hint(extra) if extra else f"pip install {package.replace('_', '-')}"
                    raise MissingExtra(package, hint) from error
            return
        try:
            import_user_module(name)
        except ModuleNotFoundError as error:
            if error.name != name.split(".")[0] and error.name != name:
                raise
            raise UsageError(
                f"no module {name!r} for environment {self.id!r}",
                hint="is it in this folder or on PYTHONPATH?",
            ) from error

    def _explained(self, error: BaseException) -> PolicyFuzzError:
        """The error to show to the user instead of `error`."""
        import gymnasium

        text = str(error)
        if isinstance(error, gymnasium.error.DeprecatedEnv) or "have been moved" in text:
            return UsageError(f"gymnasium cannot make {self.id!r}: {text}", _successors(self.id))
        if isinstance(error, gymnasium.error.UnregisteredEnv):
            return UsageError(
                f"gymnasium cannot make {self.id!r}: {text}",
                hint="an environment of your own is named gym:module:Name-v0, gym:module:Class or"
                " gym:FILE.py:Class",
            )
        is_missing = isinstance(error, gymnasium.error.DependencyNotInstalled | ModuleNotFoundError)
        for package, extra in _EXTRA_FOR.items() if is_missing else ():
            if package in text.lower():
                return MissingExtra(package, install_hint(extra))
        if isinstance(error, TypeError) and self.kwargs:
            given = ", ".join(f"env.{name}" for name in self.kwargs)
            return UsageError(f"cannot make {self.id!r} with {given}: {text}", "check the names and values")
        hint = "if it cannot draw itself after all: render=no" if self.is_rendered else ""
        if isinstance(error, TypeError) and "required" in text:
            hint = "give it what it asks for: env.NAME=VALUE"
        return TargetCodeError.of(f"environment {self.id}", error, hint)


def _successors(environment_id: str) -> str:
    """A hint that names later versions of a registered environment, the nearest first."""
    import gymnasium

    base, _, given = environment_id.rpartition("-v")
    # those that were moved away have a function here, which raises
    versions = [
        spec.version
        for name, spec in gymnasium.registry.items()
        if name.rpartition("-v")[0] == base and spec.version is not None and isinstance(spec.entry_point, str)
    ]
    later = sorted(version for version in versions if given.isdigit() and version > int(given))
    if not later:
        return ""
    names = " or ".join(f"gym:{base}-v{version}" for version in later)
    return f"use {names}, if the policy was trained for the same observations and actions"


def limited(env: Any, steps: int) -> Any:
    """`env` with at most `steps` steps in an episode; replaces a limit that it already has."""
    from gymnasium.wrappers import TimeLimit

    layer = env
    while layer is not None:
        if isinstance(layer, TimeLimit):
            layer._max_episode_steps = steps
            return env
        layer = getattr(layer, "env", None)
    return TimeLimit(env, steps)


def _hush_mujoco(spec: Any) -> None:
    """Keep MuJoCo from writing a file of warnings into the current folder for every environment made."""
    if spec is not None and str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        with suppress(ImportError):  # gymnasium says it better
            importlib.import_module("mujoco").set_mju_user_warning(lambda _text: None)
