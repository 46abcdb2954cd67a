"""pettingzoo: names: parallel environments of PettingZoo's modules, and of the user's functions."""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from policyfuzz.core import extras, forks
from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.code_files import absolute_name, import_user_module, load_attribute
from policyfuzz.core.errors import (
    PolicyFuzzError,
    TargetCodeError,
    UsageError,
    forbid_copies,
    is_interrupt,
    unknown_name,
)
from policyfuzz.core.target import IN_MEMORY, MakeRunner, Runner, Target, check_options, choice
from policyfuzz.environments.bounds import bounded
from policyfuzz.environments.build import (
    EnvironmentSource,
    MakeEnv,
    build_target,
    environment_arguments,
    frames_per_second,
    horizon_of,
    wrappers_of,
)
from policyfuzz.environments.changed_start import Change, changed
from policyfuzz.environments.families.particle_worlds import (
    COLLISIONS,
    CountsContacts,
    find_world_start,
    is_particle_world,
)
from policyfuzz.environments.find_start import InputChanges, read_changes, unchanged_start
from policyfuzz.environments.joint_policy import load_joint_policy, random_policy
from policyfuzz.environments.parallel import (
    REWARDS,
    Agents,
    ParallelSimulator,
    RenderedParallelSimulator,
)
from policyfuzz.environments.simulator import prepare_headless
from policyfuzz.environments.spaces import action_space_of
from policyfuzz.environments.starts import Start

_OPTIONS = (
    *("oracle", "input", "bounds", "horizon", "env.", "reward"),
    *("wrap", "fresh", "infinite", "render", "patience"),
)

#: What makes an environment in the modules of PettingZoo.
_FACTORY = "parallel_env"
#: Packages that our extra brings.
_OURS = ("pettingzoo", "mpe2")
#: Steps after which two environments that look the same are taken to be the same.
_COMPARED_STEPS = 5


def make_target(
    environment: str,
    options: Mapping[str, str],
    policy: Any,
    trust: bool = False,
    make_runner: MakeRunner = Runner,
) -> Target:
    """The target of the environment of this name; `policy` names URIs, or is an object for all agents."""
    check_options("pettingzoo", options, _OPTIONS)
    horizon = horizon_of(options)
    plain = _environment(full_name(environment), options, horizon)
    for_film = _made_for_film(plain, options)
    # where observations are pictures, some environments leave them black unless they render
    make = for_film if for_film is not None and not _observations_agree(plain, for_film) else plain
    env = make()
    agents = Agents.of(env)
    reward = _reward(options, agents)
    changes = read_changes(options.get("input", ""))
    start = bounded(*_unchanged_parallel_start(env, changes), env.unwrapped, changes, options.get("bounds"))
    is_named = policy is None or isinstance(policy, str)
    source = EnvironmentSource(
        name=f"pettingzoo:{plain.name}" if is_named else f"{IN_MEMORY}:{environment}",
        make=make,
        make_for_film=for_film,
        bounded=start,
        limit=horizon or _limit(env),
        random_policy=lambda: random_policy(agents),
        film_steps_per_second=frames_per_second(env),
        actions=_actions(agents, env),
        place=make.place,
        simulator=ParallelSimulator,
        film_simulator=RenderedParallelSimulator,
        settings={"reward": reward, "cut_after": horizon},
        add_info=_with_contacts if is_particle_world(env.unwrapped) else None,
        first_notes=(f"agents: {', '.join(agents.names)}",),
        notes=(f"reward: {_in_words(reward)}",),
    )
    loaded = load_joint_policy(policy, agents, trust, reward)
    return build_target(source, loaded, options, make_runner)


def _actions(agents: Agents, env: Any) -> ActionSpace | None:
    """What all `agents` can do, one after another; None if that of one cannot be written as numbers."""
    spaces = [action_space_of(space, env) for space in agents.action_spaces]
    known = [(name, space) for name, space in zip(agents.names, spaces, strict=True) if space is not None]
    return ActionSpace.joint(known) if len(known) == len(agents) else None


def full_name(name: str) -> str:
    """`name` so that it loads the same from any folder: module, module:function or /FILE.py:function."""
    return absolute_name(f"{name}:{_FACTORY}" if name.endswith(".py") else name)


def _environment(name: str, options: Mapping[str, str], horizon: int | None) -> "ParallelEnvironment":
    """How to make the environment, with `horizon` as its time limit if it takes one."""
    given = environment_arguments(options)
    environment = ParallelEnvironment(name, given, wrappers_of(options))
    if horizon is None or "max_cycles" in given or not environment.takes(max_cycles=horizon):
        return environment
    return environment.given(max_cycles=horizon)


def _made_for_film(plain: "ParallelEnvironment", options: Mapping[str, str]) -> "ParallelEnvironment | None":
    """Makes environments that can be filmed; None if they cannot, or with render=no."""
    if choice(options, "render", ("yes", "no")) == "no":
        return None
    env = plain()
    mode, known = getattr(env, "render_mode", None), getattr(env, "metadata", None) or {}
    env.close()
    if mode == "rgb_array":
        return plain
    can_render = "rgb_array" in known.get("render_modes", ()) and "render_mode" not in plain.kwargs
    can_render = can_render and plain.takes(render_mode="rgb_array")
    return plain.given(render_mode="rgb_array") if can_render else None


def _observations_agree(make_one: MakeEnv, make_other: MakeEnv) -> bool:
    """True if random actions from one seed lead to equal observations in both environments."""
    from gymnasium.utils.env_checker import data_equivalence

    one, other = make_one(), make_other()
    try:
        seen = [env.reset(seed=0)[0] for env in (one, other)]
        for step in range(_COMPARED_STEPS):
            if not data_equivalence(*seen):
                return False
            actions = {agent: _sample(one.action_space(agent), step) for agent in one.agents}
            if not actions:
                break
            seen = [env.step(actions)[0] for env in (one, other)]
        return bool(data_equivalence(*seen))
    except Exception:  # the environment fails: assume that they differ
        return False
    finally:
        one.close()
        other.close()


def _sample(space: Any, seed: int) -> Any:
    space.seed(seed)
    return space.sample()


def _with_contacts(make: MakeEnv, info_keys: Sequence[str]) -> MakeEnv:
    """Particle worlds that count collisions, if `info_keys` ask for them."""
    is_asked = any(key.rpartition(".")[2] == COLLISIONS for key in info_keys)
    return (lambda: CountsContacts(make())) if is_asked else make


def find_parallel_start(env: Any, changes: InputChanges) -> Start:
    """How to start `env`: particle worlds by their positions, all others as Gymnasium environments are."""
    return changed(*_unchanged_parallel_start(env, changes))


def _unchanged_parallel_start(env: Any, changes: InputChanges) -> tuple[Start, dict[str, Change]]:
    """The same with all dimensions as they are, and the changes that are still to be made."""
    base = env.unwrapped
    is_by_state = changes.python_file is None and changes.way in (None, "state")
    world = find_world_start(base) if is_by_state else None
    return unchanged_start(base, changes) if world is None else (world, changes.of_dimensions)


def _limit(env: Any) -> int | None:
    """Steps after which the environment ends an episode by itself, None if unknown."""
    limit = getattr(env.unwrapped, "max_cycles", None)
    return limit if isinstance(limit, int) and limit > 0 else None


def _reward(options: Mapping[str, str], agents: Agents) -> str:
    reward = options.get("reward", "sum")
    if reward not in REWARDS and reward not in agents.names:
        raise unknown_name("reward", reward, (*REWARDS, *agents.names))
    return reward


def _in_words(reward: str) -> str:
    if reward not in REWARDS:
        return f"that of {reward}"
    what = {"sum": "the sum", "mean": "the mean", "min": "the lowest"}[reward]
    return f"{what} over all agents; reward=sum, mean, min or the name of one agent changes it"


@dataclass(frozen=True, slots=True)
class ParallelEnvironment:
    """How to make one environment object, with its wrappers."""

    name: str  #: as `full_name` gives it, or FAMILY/NAME as PettingZoo has it registered
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()  #: module:function, the innermost first
    #: What `name` and `wrappers` name, if another process has loaded it.
    loaded: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> Any:
        """Other processes may not have the files of the user's code."""
        places = [name for name in (self.name, *self.wrappers) if ":" in name]
        loaded = {place: self._load(place, "environment") for place in places}
        return ParallelEnvironment, (self.name, self.kwargs, self.wrappers, loaded)

    def __call__(self) -> Any:
        """A new environment object."""
        prepare_headless()
        pettingzoo = extras.load("pettingzoo", "pettingzoo")
        factory = self._factory(pettingzoo)
        process = forks.this_process()
        try:
            env = _parallel(self.name, factory(**self.kwargs))
            for name in self.wrappers:
                env = self._load(name, "wrapper")(env)
        except PolicyFuzzError:
            raise
        except BaseException as error:  # whatever an environment raises while it is made
            forks.end_copy_of(process)
            if is_interrupt(error):
                raise
            raise self._explained(error) from error
        forbid_copies(process, f"environment {self.name}")
        return env

    @property
    def place(self) -> str:
        """Where the code is that makes it: module:function or /FILE.py:function."""
        return self.name if ":" in self.name else f"{self.name}:{_FACTORY}"

    def given(self, **kwargs: Any) -> "ParallelEnvironment":
        """The same with these further arguments."""
        return replace(self, kwargs={**self.kwargs, **kwargs})

    def takes(self, **kwargs: Any) -> bool:
        """True if it can also be made with these arguments."""
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
        factory = self._load(self.name, "environment") if ":" in self.name else _from_module(module)
        if not callable(factory):
            raise UsageError(f"{self.name} is a {type(factory).__name__}, expected a function or class")
        made: Callable[..., Any] = factory
        return made

    def _load(self, place: str, what: str) -> Any:
        return self.loaded[place] if place in self.loaded else load_attribute(place, what)

    def _explained(self, error: BaseException) -> PolicyFuzzError:
        """The error to show to the user instead of `error`."""
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
        found = (importlib.import_module if package in _OURS else import_user_module)(module)
    except ImportError as error:
        raise _not_imported(module, error) from error
    except BaseException as error:  # whatever the user's own module raises
        if is_interrupt(error):
            raise
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
            f"{module} has moved to another package", f"use {module[11:].replace('mpe', 'mpe2', 1)}"
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
