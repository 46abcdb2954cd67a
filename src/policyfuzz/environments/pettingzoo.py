"""Makes the environments that pettingzoo: names: modules with parallel_env, and the user's own functions."""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from policyfuzz.core import extras
from policyfuzz.core.code_files import absolute_name, load_attribute
from policyfuzz.core.errors import PolicyFuzzError, TargetCodeError, UsageError
from policyfuzz.environments.simulator import prepare_headless

#: What makes an environment in the modules of PettingZoo.
_FACTORY = "parallel_env"
#: Packages that our extra brings.
_OURS = ("pettingzoo", "mpe2")


def full_name(name: str) -> str:
    """`name` so that it loads the same from any folder: module, module:function or /FILE.py:function."""
    return absolute_name(f"{name}:{_FACTORY}" if name.endswith(".py") else name)


@dataclass(frozen=True, slots=True)
class ParallelEnvironment:
    """How to make one environment object, with its wrappers."""

    name: str  #: as `full_name` gives it, or FAMILY/NAME as PettingZoo has it registered
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()  #: module:function, the innermost first
    #: What `name` and `wrappers` name, where it came along and is not looked for.
    things: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> Any:
        """Other processes may not have the files that the user's code stands in."""
        places = [name for name in (self.name, *self.wrappers) if ":" in name]
        things = {place: self._thing(place, "environment") for place in places}
        return ParallelEnvironment, (self.name, self.kwargs, self.wrappers, things)

    def __call__(self) -> Any:
        """A new environment object."""
        prepare_headless()
        pettingzoo = extras.load("pettingzoo", "pettingzoo")
        factory = self._factory(pettingzoo)
        try:
            env = _parallel(self.name, factory(**self.kwargs))
            for name in self.wrappers:
                env = self._thing(name, "wrapper")(env)
        except PolicyFuzzError:
            raise
        except Exception as error:  # whatever an environment raises while it is made
            raise self._told(error) from error
        return env

    @property
    def place(self) -> str:
        """Where the code stands that makes it: module:function or /FILE.py:function."""
        return self.name if ":" in self.name else f"{self.name}:{_FACTORY}"

    def given(self, **kwargs: Any) -> "ParallelEnvironment":
        """The same, made with these arguments as well."""
        return replace(self, kwargs={**self.kwargs, **kwargs})

    def takes(self, **kwargs: Any) -> bool:
        """True where it can be made with these arguments as well."""
        try:
            env = self.given(**kwargs)()
        except PolicyFuzzError:
            return False
        env.close()
        return True

    def _factory(self, pettingzoo: Any) -> Callable[..., Any]:
        module, _, _attribute = self.name.partition(":")
        if "/" in module and not module.endswith(".py"):
            return lambda **kwargs: pettingzoo.make("parallel", self.name, **kwargs)
        factory = self._thing(self.name, "environment") if ":" in self.name else _from_module(module)
        if not callable(factory):
            raise UsageError(f"{self.name} is a {type(factory).__name__}, expected a function or class")
        made: Callable[..., Any] = factory
        return made

    def _thing(self, place: str, what: str) -> Any:
        return self.things[place] if place in self.things else load_attribute(place, what)

    def _told(self, error: Exception) -> PolicyFuzzError:
        """`error` in words for the user."""
        if isinstance(error, TypeError) and self.kwargs:
            given = ", ".join(f"env.{name}" for name in self.kwargs)
            return UsageError(f"cannot make {self.name!r} with {given}: {error}", "check names and values")
        if type(error).__module__.startswith("pettingzoo.env_registry"):
            return UsageError(f"PettingZoo cannot make {self.name!r}: {error}")
        return TargetCodeError.of(f"environment {self.name}", error)


def _from_module(module: str) -> Any:
    """The function of `module` that makes parallel environments."""
    package = module.split(".")[0]
    if package in _OURS:
        extras.load(package, "pettingzoo")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise _not_imported(module, error) from error
    except Exception as error:  # whatever the user's own module raises
        raise TargetCodeError.of(f"environment {module}", error) from error
    if hasattr(found, _FACTORY):
        return getattr(found, _FACTORY)
    is_turn_based = hasattr(found, "env") or hasattr(found, "raw_env")
    raise UsageError(
        f"{module} has no {_FACTORY}"
        + (": it is turn-based, and no parallel environment" if is_turn_based else ""),
        hint=f"name a module that has it, such as mpe2.simple_spread_v3, or a function: {module}:FUNCTION",
    )


def _not_imported(module: str, error: ImportError) -> PolicyFuzzError:
    package, _, rest = module.partition(".")
    if module.startswith("pettingzoo.mpe."):
        return UsageError(
            f"{module} has moved to a package of its own", f"use {module[11:].replace('mpe', 'mpe2', 1)}"
        )
    if not isinstance(error, ModuleNotFoundError) or not f"{module}.".startswith(f"{error.name}."):
        missing = f"needs {error.name}, which is not installed" if error.name else str(error)
        hint = f"pip install 'pettingzoo[{rest.split('.')[0]}]'" if package == "pettingzoo" else ""
        return UsageError(f"{module} {missing}", hint)
    siblings = _modules_beside(module)
    close = difflib.get_close_matches(module, siblings, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "is it in this folder or on PYTHONPATH?"
    return UsageError(f"no module {module!r} for an environment", hint)


def _modules_beside(module: str) -> list[str]:
    """Names of modules of the same package."""
    package = module.rpartition(".")[0]
    try:
        path = importlib.import_module(package).__path__ if package else None
    except ImportError:
        return []
    return [f"{package}.{one.name}" if package else one.name for one in pkgutil.iter_modules(path)]


def _parallel(name: str, env: Any) -> Any:
    """`env` as a parallel environment, if it can be one."""
    pettingzoo = extras.load("pettingzoo", "pettingzoo")
    if isinstance(env, pettingzoo.ParallelEnv):
        return env
    takes_turns = isinstance(env, pettingzoo.AECEnv)
    if takes_turns and env.metadata.get("is_parallelizable"):
        return extras.load("pettingzoo.utils.conversions", "pettingzoo").aec_to_parallel(env)
    reason = ", which takes turns" if takes_turns else ""
    raise UsageError(f"{name} gave {type(env).__name__}{reason}; expected a pettingzoo.ParallelEnv")
