"""Makes the environments that gym: names: registered ones, and classes or functions of the user's own."""

import ast
import importlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policyfuzz.core.code_files import load_attribute, load_file
from policyfuzz.core.errors import MissingExtra, PolicyFuzzError, TargetCodeError, UsageError
from policyfuzz.core.extras import install_hint

#: First part of an environment's name to the package that registers it when it is imported, and our extra.
_REGISTERED_BY = {
    "MiniGrid": ("minigrid", "minigrid"),
    "BabyAI": ("minigrid", "minigrid"),
    "ALE": ("ale_py", ""),
}
#: What a missing package is called in gymnasium's own complaint, to our extra that brings it.
_EXTRA_FOR = {"box2d": "box2d", "mujoco": "mujoco", "pygame": "gym", "minigrid": "minigrid"}


@dataclass(frozen=True, slots=True)
class Environment:
    """How to make one environment object, with its wrappers."""

    id: str  #: as registered, perhaps after module: or FILE.py:, or module:attribute or FILE.py:attribute
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()  #: module:class, the innermost first
    max_steps: int | None = None  #: instead of the limit that is registered
    is_rendered: bool = False
    #: What `id` and `wrappers` name, where it came along and is not looked for.
    things: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> Any:
        """Other processes may not have the files that the user's code stands in."""
        things = self.things or self._things()
        return Environment, (self.id, self.kwargs, self.wrappers, self.max_steps, self.is_rendered, things)

    def __call__(self) -> Any:
        """A new environment object."""
        kwargs = dict(self.kwargs)
        if self.is_rendered:
            kwargs["render_mode"] = "rgb_array"
        try:
            env = self._made(kwargs)
            for name in self.wrappers:
                env = self._thing(name, "wrapper")(env)
        except PolicyFuzzError:
            raise
        except Exception as error:  # whatever an environment raises while it is made
            raise self._told(error) from error
        return env

    def _made(self, kwargs: dict[str, Any]) -> Any:
        import gymnasium

        own = self._own_factory()
        if own is None:
            _hush_mujoco(gymnasium.registry.get(self.id))
            limit = {} if self.max_steps is None else {"max_episode_steps": self.max_steps}
            module, _, name = self.id.rpartition(":")
            registered = name if module.endswith(".py") else self.id
            return gymnasium.make(registered, disable_env_checker=True, **limit, **kwargs)
        env = own(**kwargs)
        if not isinstance(env, gymnasium.Env):
            raise UsageError(f"{self.id} gave {type(env).__name__}, expected a gymnasium.Env")
        return env if self.max_steps is None else limited(env, self.max_steps)

    def _own_factory(self) -> Any:
        """What makes the environment, where it is not registered."""
        import gymnasium

        module, _, name = self.id.rpartition(":")
        if module.endswith(".py"):
            if name.isidentifier():
                return self._thing(self.id, "environment")
            if self.id not in self.things:
                load_file(Path(module), "environment")  # which registers it
            return None
        self._import_package(module or self.id)
        if name in gymnasium.registry or not module:
            return None
        return self._thing(self.id, "environment") if name.isidentifier() else None

    def _things(self) -> dict[str, Any]:
        """What `id` and `wrappers` name; of a file that registers the environment, its module."""
        things = {place: self._thing(place, "wrapper") for place in self.wrappers}
        things[self.id] = self._own_factory()
        file = self.id.rpartition(":")[0]
        if file.endswith(".py") and things[self.id] is None:
            things[self.id] = load_file(Path(file), "environment")
        return things

    def _thing(self, place: str, what: str) -> Any:
        return self.things[place] if place in self.things else load_attribute(place, what)

    def _import_package(self, name: str) -> None:
        """Have the environment registered: by the user's module, or by a package that is known to."""
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
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name.split(".")[0] and error.name != name:
                raise
            raise UsageError(
                f"no module {name!r} for environment {self.id!r}",
                hint="is it in this folder or on PYTHONPATH?",
            ) from error

    def _told(self, error: Exception) -> PolicyFuzzError:
        """`error` in words for the user."""
        import gymnasium

        text = str(error)
        if isinstance(error, gymnasium.error.DeprecatedEnv):
            return UsageError(f"gymnasium cannot make {self.id!r}: {text}")
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


def limited(env: Any, steps: int) -> Any:
    """`env` with so many steps in an episode at most, instead of a limit that it has already."""
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
        with suppress(ImportError):  # which gymnasium tells better
            importlib.import_module("mujoco").set_mju_user_warning(lambda _text: None)


def literal(text: str) -> Any:
    """`text` as the Python value that it looks like, else as text; true and false count too."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
