"""The one builder: from a source of environments, a policy and options to a target."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.code_files import absolute_name, code_digest
from policyfuzz.core.errors import PolicyError, UnhealthyTarget
from policyfuzz.core.files import absolute_path
from policyfuzz.core.interfaces import Policy
from policyfuzz.core.target import IN_MEMORY, MakeRunner, Target, choice, joined, number
from policyfuzz.environments.bounds import BoundedStart
from policyfuzz.environments.find_start import read_changes
from policyfuzz.environments.gauges import Gauge
from policyfuzz.environments.nominal import EPISODES, EPISODES_AT_RANDOM, NominalChecks, NominalRun
from policyfuzz.environments.simulator import GymSimulator, RenderedGymSimulator
from policyfuzz.environments.starts import SeedStart, Start
from policyfuzz.oracles import graded, language
from policyfuzz.oracles.defaults import SUCCESS_KEYS, NominalEpisodes, default_oracle
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri import load_policy

#: Steps after which an episode counts as endless if the environment declares no limit.
LIMITLESS = 1000
LONGEST = 1_000_000
#: Random inputs before the first mutation: such environments run a few dozen episodes a second.
SAMPLES = 200
#: Makes an environment object with all its wrappers.
MakeEnv = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class EnvironmentSource:
    """Environment objects of one kind, and what is different about that kind."""

    name: str  #: of the target, without options
    make: MakeEnv
    make_for_film: MakeEnv | None  #: they draw themselves, which may cost time; None if they cannot
    bounded: BoundedStart
    limit: int | None  #: steps after which an episode ends by itself, None if unknown
    random_policy: Callable[[], Policy]
    film_steps_per_second: int
    actions: ActionSpace | None = None  #: what can be done in it; None if that cannot be written as numbers
    place: str = ""  #: of the user's code, MODULE:NAME or FILE.py:NAME
    simulator: type[GymSimulator] = GymSimulator
    film_simulator: type[GymSimulator] = RenderedGymSimulator
    settings: Mapping[str, Any] = field(default_factory=dict)  #: further ones of the simulator
    #: Wraps environments so that their `info` has these keys, for kinds that can add some.
    add_info: Callable[[MakeEnv, Sequence[str]], MakeEnv] | None = None
    gauge: Gauge | None = None  #: how near such an environment is to failing, if that can be read
    first_notes: tuple[str, ...] = ()  #: of the target
    notes: tuple[str, ...] = ()

    def with_info(self, make: MakeEnv, keys: Sequence[str]) -> MakeEnv:
        """`make`, with `keys` added to `info` if this kind of environment can add them."""
        return make if self.add_info is None else self.add_info(make, keys)


def build_target(
    source: EnvironmentSource, policy: LoadedPolicy, options: Mapping[str, str], make_runner: MakeRunner
) -> Target:
    """The target in which `policy` acts in the environments of `source`.

    `make_runner` runs the nominal episodes that a default oracle is chosen from.
    """
    # the factories use local names, so that workers get nothing else of the source; an error that names what
    # cannot be sent to workers shows these names
    start, horizon = source.bounded.start, LIMITLESS if source.limit is None else source.limit
    simulator, film_simulator = source.simulator, source.film_simulator
    settings = {**simulator_settings(options), **source.settings}

    def nominal_run(make_policy: Callable[[], Policy], count: int) -> NominalRun:
        keys = nominal_keys(options, start)
        make_env = source.with_info(source.make, keys)
        watched = settings | {"watches_space": "out_of_space" in options.get("oracle", "")}
        return NominalRun(
            lambda: simulator(make_env, SeedStart(), keys, **watched), make_policy, horizon, count
        )

    nominal = nominal_run(policy.make, EPISODES)
    at_random = nominal_run(source.random_policy, EPISODES_AT_RANDOM)
    oracle, reason = chosen_oracle(
        options.get("oracle"), start, lambda: nominal(make_runner), lambda: at_random(make_runner)
    )
    info_keys = language.info_keys(oracle)
    settings |= oracle_settings(oracle, source.limit) | {"gauge": source.gauge}
    failure = None if source.gauge is None else source.gauge.failure
    make_env = source.with_info(source.make, info_keys)
    make_for_film = source.make_for_film and source.with_info(source.make_for_film, info_keys)
    named = options if oracle == start.oracle else {**options, "oracle": oracle}
    target = Target(
        name=joined(source.name, absolute_options(named)),
        inputs=start.inputs,
        simulator=lambda: simulator(make_env, start, info_keys, **settings),
        long_simulator=lambda steps: simulator(
            partial(_made_longer, make_env, steps), start, info_keys, **lasting(settings, steps)
        ),
        film_simulator=make_for_film
        and (lambda: film_simulator(make_for_film, start, info_keys, **settings)),
        policy=policy.make,
        oracle=graded(language.parse(oracle), failure, horizon),
        horizon=horizon,
        policy_name=policy.name,
        policy_uri=None if policy.uri.startswith(f"{IN_MEMORY}:") else policy.uri,
        policy_sha256=policy.sha256,
        code_sha256=code_digest(own_files(source.place, options)),
        solvable=getattr(start, "solvable", None),
        actions=source.actions,
        seed_is_situation=getattr(start, "seed_is_situation", False),
        own_reset=source.bounded.own_reset,
        samples=SAMPLES,
        film_steps_per_second=source.film_steps_per_second,
        notes=(
            *source.first_notes,
            f"input: {start.label}",
            source.bounded.note,
            f"oracle: {oracle}, {reason}",
            *source.notes,
            *(f"policy: {note}" for note in policy.notes),
            *limit_notes(source.limit, settings["endless_after"]),
        ),
    )
    checks = NominalChecks(
        target=target,
        policy=policy,
        nominal=nominal,
        random_policy=source.random_policy,
        at_random=at_random,
        info_keys=info_keys,
        has_other_horizon="horizon" in options,
    )
    return replace(target, further_checks=checks)


def _made_longer(make_env: MakeEnv, steps: int) -> Any:
    """An environment whose own limit, if it counts steps, is `steps`."""
    env = make_env()
    layer, base = env, env.unwrapped
    while layer is not None:
        if isinstance(vars(layer).get("_max_episode_steps"), int):  # Gymnasium's TimeLimit
            layer._max_episode_steps = steps
        layer = vars(layer).get("env")
    for name in ("max_cycles", "max_steps"):  # PettingZoo's, and MiniGrid's
        if isinstance(getattr(base, name, None), int):
            setattr(base, name, steps)
    return env


def lasting(settings: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """`settings` of a simulator whose episodes last `steps` steps at most."""
    cut = {"cut_after": steps} if settings.get("cut_after") is not None else {}
    return {**settings, "endless_after": None, **cut}


def policy_for(policy: Any, spaces: Spaces, trust: bool) -> LoadedPolicy:
    """The loaded `policy`, a URI or an object of this process, after a trial in `spaces`."""
    if policy is None:
        raise PolicyError(
            "no policy was given",
            hint="name one: --policy sb3:model.zip, onnx:model.onnx, torchscript:model.pt, npz:weights.npz"
            " or py:file.py:function",
        )
    if isinstance(policy, str):
        return load_policy(policy, spaces, trust)
    from policyfuzz.environments.live import live_policy

    return live_policy(policy, spaces)


def environment_arguments(options: Mapping[str, str]) -> dict[str, Any]:
    """The arguments that `env.NAME` options give, as Python values."""
    return {key[4:]: literal(value) for key, value in options.items() if key.startswith("env.")}


def literal(text: str) -> Any:
    """`text` as a Python literal, or as it is if it is none; true and false count too."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (
        ValueError,
        SyntaxError,
        TypeError,
        RecursionError,
        MemoryError,
    ):  # it is none, or nested too deep
        return text


def chosen_oracle(
    text: str | None,
    start: Start,
    nominal: Callable[[], NominalEpisodes],
    at_random: Callable[[], NominalEpisodes],
) -> tuple[str, str]:
    """What counts as a crash, and why."""
    if text is not None:

        def quantile(share: float) -> float:
            return float(np.quantile(_runnable(nominal()).returns, share))

        return language.resolved(text, quantile), "as you asked"
    if start.oracle is not None:
        return start.oracle, "what goes wrong in this kind of environment"
    chosen = default_oracle(_runnable(nominal()), lambda: at_random().returns)
    return chosen.text, chosen.reason


def _runnable(seen: NominalEpisodes) -> NominalEpisodes:
    """`seen`; raises if it is empty."""
    if len(seen) == 0:
        raise UnhealthyTarget(
            f"no episode from the environment's own reset could be run: {seen.failure}",
            hint="fix the environment; policyfuzz check with --oracle terminated shows more",
        )
    return seen


def horizon_of(options: Mapping[str, str]) -> int | None:
    """Steps of an episode that the user asks for, None if the environment decides."""
    return number(options, "horizon", 1, int, 1, LONGEST) if "horizon" in options else None


def absolute_options(options: Mapping[str, str]) -> dict[str, str]:
    """`options` rewritten so that they mean the same in any folder."""
    given, wrappers = options.get("input", ""), wrappers_of(options)
    if given.endswith(".toml"):
        given = read_changes(given).text  # its content, so that the file is not needed again
    elif given.endswith(".py"):
        given = str(absolute_path(given))
    said = {"input": given, "wrap": ";".join(wrappers)}
    return {**options, **{name: text for name, text in said.items() if text}}


def own_files(place: str, options: Mapping[str, str]) -> list[str]:
    """Where the user's code is: of the environment at `place`, its wrappers and its input."""
    given = absolute_options(options).get("input", "")
    files = [place] if ":" in place else []
    return [*files, *wrappers_of(options), *([given] if given.endswith(".py") else [])]


def wrappers_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the wrappers, the innermost first, that load the same from any folder."""
    return tuple(absolute_name(name) for name in options.get("wrap", "").split(";") if name)


def frames_per_second(env: Any) -> int:
    """Frames per second for a film of `env`."""
    given = (env.metadata or {}).get("render_fps")
    return min(60, max(1, int(given))) if given else 20


def limit_notes(limit: int | None, endless_after: int | None) -> tuple[str, ...]:
    """The note of `check` on an environment without a limit."""
    if limit is not None:
        return ()
    meaning = "is cut" if endless_after is None else "is an error"
    return (
        f"horizon: the environment declares no limit, so an episode that has not ended after {LIMITLESS}"
        f" steps {meaning}; set one with --horizon",
    )


def simulator_settings(options: Mapping[str, str]) -> dict[str, Any]:
    """Settings of the simulator that options give."""
    return {
        "is_fresh": choice(options, "fresh", ("no", "yes")) == "yes",
        "may_be_infinite": choice(options, "infinite", ("no", "yes")) == "yes",
        "patience_seconds": number(options, "patience", 60.0, float, 0.01, 1e6),
    }


def oracle_settings(oracle: str, limit: int | None) -> dict[str, Any]:
    """What simulators have to watch for an `oracle`."""
    watched = language.looks_at(oracle)
    # an oracle for episodes that were cut says that it is no error when they are
    is_endless = limit is None and "truncated" not in watched
    return {"endless_after": LIMITLESS if is_endless else None, "watches_space": "out_of_space" in watched}


def nominal_keys(options: Mapping[str, str], start: Start) -> tuple[str, ...]:
    """Keys of `info` to record in nominal episodes."""
    named = language.info_keys(options.get("oracle") or start.oracle or "terminated")
    return tuple(sorted({*SUCCESS_KEYS, *named}))
