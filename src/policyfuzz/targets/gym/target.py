"""From the name of a Gymnasium environment and a policy to a target."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz.code_files import absolute_name
from policyfuzz.errors import PolicyError, UnhealthyTarget, UsageError
from policyfuzz.oracles import language
from policyfuzz.oracles.defaults import SUCCESS_KEYS, NominalEpisodes, default_oracle
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri import load_policy
from policyfuzz.simulators.gym.find_start import find_start
from policyfuzz.simulators.gym.input_changes import read_changes
from policyfuzz.simulators.gym.seed_start import SeedStart
from policyfuzz.simulators.gym.simulator import GymSimulator, RenderedGymSimulator
from policyfuzz.simulators.gym.start import Start
from policyfuzz.target import Target
from policyfuzz.targets.gym.checks import GymChecks
from policyfuzz.targets.gym.environment import Environment, literal
from policyfuzz.targets.gym.nominal import RandomActions, nominal_episodes
from policyfuzz.targets.names import check_options, joined
from policyfuzz.targets.options import choice, number

_OPTIONS = ("oracle", "input", "horizon", "env.", "wrap", "fresh", "render", "patience")

#: Steps after which an episode is taken to be endless, where the environment declares no limit.
LIMITLESS = 1000
LONGEST = 1_000_000
#: Random inputs before the first is changed: environments of this kind run some dozens of episodes a second.
SAMPLES = 200


def make_target(
    environment_id: str, options: Mapping[str, str], policy: str | None, trust: bool = False
) -> Target:
    """The target of the environment called `environment_id`, acted in by the policy of this URI."""
    check_options("gym", options, _OPTIONS)
    environment = environment_of(environment_id, options)
    base = f"gym:{absolute_name(environment_id)}"
    return build_target(base, environment, lambda spaces: _policy(policy, spaces, trust), options)


def build_target(
    base: str,
    make_env: Callable[[], Any],
    load: Callable[[Spaces], LoadedPolicy],
    options: Mapping[str, str],
) -> Target:
    """The target of the environments that `make_env` gives; `base` is its name without options."""
    env = make_env()
    for space in ("observation_space", "action_space"):
        if getattr(env, space, None) is None:
            raise UsageError(f"{base} has no {space}", "an environment declares both of its spaces")
    limit = _limit(env)
    horizon = LIMITLESS if limit is None else limit
    start = find_start(env, read_changes(options.get("input", "")))
    loaded = load(Spaces(env.observation_space, env.action_space))

    settings = simulator_settings(options)

    @cache
    def nominal() -> NominalEpisodes:
        simulator = GymSimulator(make_env, SeedStart(), nominal_keys(options, start), **settings)
        return nominal_episodes(simulator, loaded.make(), horizon)

    text, reason = chosen_oracle(options.get("oracle"), start, nominal)
    for_film = _made_for_film(make_env, env, options)
    settings |= oracle_settings(text, limit)
    named = {**options, "oracle": text} if text != start.oracle else dict(options)
    target = Target(
        name=joined(base, absolute_options(named)),
        inputs=start.inputs,
        simulator=lambda: GymSimulator(make_env, start, language.info_keys(text), **settings),
        film_simulator=for_film
        and (lambda: RenderedGymSimulator(for_film, start, language.info_keys(text), **settings)),
        policy=loaded.make,
        oracle=language.parse(text),
        horizon=horizon,
        policy_name=loaded.name,
        policy_uri=loaded.uri,
        policy_sha256=loaded.sha256,
        solvable=getattr(start, "solvable", None),
        samples=SAMPLES,
        film_steps_per_second=frames_per_second(env),
        notes=(
            f"input: {start.label}",
            f"oracle: {text}, {reason}",
            *loaded.notes,
            *limit_notes(limit, settings["endless_after"]),
        ),
    )
    random = partial(RandomActions, env.action_space)
    checks = GymChecks(loaded, random, nominal, language.info_keys(text), "horizon" in options)
    return replace(target, further_checks=checks.of(target))


def environment_of(environment_id: str, options: Mapping[str, str]) -> Environment:
    """How to make the environment."""
    horizon = number(options, "horizon", 1, int, 1, LONGEST) if "horizon" in options else None
    return Environment(
        absolute_name(environment_id),
        {key[4:]: literal(value) for key, value in options.items() if key.startswith("env.")},
        wrappers_of(options),
        horizon,
    )


def _made_for_film(
    make_env: Callable[[], Any], env: Any, options: Mapping[str, str]
) -> Callable[[], Any] | None:
    """How to make the environment so that it draws itself, which may cost time also where nobody looks."""
    if choice(options, "render", ("yes", "no")) == "no":
        return None
    if env.render_mode == "rgb_array":
        return make_env
    can_render = "rgb_array" in (env.metadata or {}).get("render_modes", ())
    if can_render and isinstance(make_env, Environment) and "render_mode" not in make_env.kwargs:
        return replace(make_env, is_rendered=True)
    return None


def _limit(env: Any) -> int | None:
    """Steps after which the environment ends an episode by itself, None where nobody knows."""
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


def _policy(uri: str | None, spaces: Spaces, trust: bool) -> LoadedPolicy:
    if uri is None:
        raise PolicyError(
            "no policy was given",
            hint="name one: --policy sb3:model.zip, onnx:model.onnx, torchscript:model.pt, npz:weights.npz"
            " or py:file.py:function",
        )
    return load_policy(uri, spaces, trust)


def chosen_oracle(text: str | None, start: Start, nominal: Callable[[], NominalEpisodes]) -> tuple[str, str]:
    """What counts as a crash, and why."""
    if text is not None:

        def quantile(share: float) -> float:
            return float(np.quantile(_runnable(nominal()).returns, share))

        return language.resolved(text, quantile), "as you asked"
    if start.oracle is not None:
        return start.oracle, "what goes wrong in this kind of environment"
    chosen = default_oracle(_runnable(nominal()))
    return chosen.text, chosen.reason


def _runnable(seen: NominalEpisodes) -> NominalEpisodes:
    """`seen` itself, unless there is nothing in it."""
    if len(seen) == 0:
        raise UnhealthyTarget(
            f"no episode from the environment's own reset could be run: {seen.failure}",
            hint="mend the environment; check --oracle terminated tells more",
        )
    return seen


def absolute_options(options: dict[str, str]) -> dict[str, str]:
    """`options` that mean the same in any folder."""
    given, wrappers = options.get("input", ""), wrappers_of(options)
    is_file = given.endswith((".toml", ".py"))
    return (
        options
        | ({"input": str(Path(given).expanduser().resolve())} if is_file else {})
        | ({"wrap": ";".join(wrappers)} if wrappers else {})
    )


def wrappers_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the wrappers, the innermost first, that load the same from any folder."""
    return tuple(absolute_name(name) for name in options.get("wrap", "").split(";") if name)


def frames_per_second(env: Any) -> int:
    """How fast a film of `env` should be."""
    given = (env.metadata or {}).get("render_fps")
    return min(60, max(1, int(given))) if given else 20


def limit_notes(limit: int | None, endless_after: int | None) -> tuple[str, ...]:
    """What `check` says of episodes that never end."""
    if limit is not None:
        return ()
    meaning = "is cut" if endless_after is None else "is an error"
    return (
        f"horizon: the environment declares no limit, so an episode that has not ended after {LIMITLESS}"
        f" steps {meaning}; set one with --horizon",
    )


def simulator_settings(options: Mapping[str, str]) -> dict[str, Any]:
    """What simulators are told about the environments."""
    return {
        "is_fresh": choice(options, "fresh", ("no", "yes")) == "yes",
        "patience_seconds": number(options, "patience", 60.0, float, 0.01, 1e6),
    }


def oracle_settings(oracle: str, limit: int | None) -> dict[str, Any]:
    """What simulators have to watch for an `oracle`."""
    # whoever asks for episodes that were cut says that it is no error when they are
    is_endless = limit is None and "truncated" not in oracle
    return {
        "endless_after": LIMITLESS if is_endless else None,
        "watches_space": "out_of_space" in oracle,
    }


def nominal_keys(options: Mapping[str, str], start: Start) -> tuple[str, ...]:
    """Keys of `info` that are worth knowing about nominal episodes."""
    named = language.info_keys(options.get("oracle") or start.oracle or "terminated")
    return tuple(sorted({*SUCCESS_KEYS, *named}))
