"""From the name of a Gymnasium environment and a policy to a target."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from policyfuzz.core.code_files import absolute_name, code_digest
from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.core.interfaces import Policy
from policyfuzz.core.names import check_options, choice, joined, number
from policyfuzz.core.target import MakeRunner, Runner, Target
from policyfuzz.environments.choices import (
    LIMITLESS,
    LONGEST,
    SAMPLES,
    absolute_options,
    chosen_oracle,
    frames_per_second,
    limit_notes,
    nominal_keys,
    oracle_settings,
    own_files,
    simulator_settings,
    wrappers_of,
)
from policyfuzz.environments.find_start import find_start
from policyfuzz.environments.gymnasium import Environment, literal
from policyfuzz.environments.input_changes import read_changes
from policyfuzz.environments.nominal import GymChecks, NominalRun, RandomActions
from policyfuzz.environments.simulator import GymSimulator, RenderedGymSimulator
from policyfuzz.environments.starts import SeedStart
from policyfuzz.oracles import language
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri import load_policy

_OPTIONS = ("oracle", "input", "horizon", "env.", "wrap", "fresh", "infinite", "render", "patience")


def make_target(
    environment_id: str,
    options: Mapping[str, str],
    policy: str | None,
    trust: bool = False,
    make_runner: MakeRunner = Runner,
) -> Target:
    """The target of the environment called `environment_id`, acted in by the policy of this URI."""
    check_options("gym", options, _OPTIONS)
    environment = environment_of(environment_id, options)
    base = f"gym:{absolute_name(environment_id)}"
    return build_target(
        base, environment, lambda spaces: _policy(policy, spaces, trust), options, make_runner
    )


def build_target(
    base: str,
    make_env: Callable[[], Any],
    load: Callable[[Spaces], LoadedPolicy],
    options: Mapping[str, str],
    make_runner: MakeRunner,
) -> Target:
    """The target of the environments that `make_env` gives; `base` is its name without options.

    `make_runner` runs the nominal episodes that a default oracle is chosen from.
    """
    env = make_env()
    for space in ("observation_space", "action_space"):
        if getattr(env, space, None) is None:
            raise UsageError(f"{base} has no {space}", "an environment declares both of its spaces")
    limit = _limit(env)
    horizon = LIMITLESS if limit is None else limit
    start = find_start(env, read_changes(options.get("input", "")))
    loaded = load(Spaces(env.observation_space, env.action_space))

    settings = simulator_settings(options)

    def nominal_of(make_policy: Callable[[], Policy]) -> NominalRun:
        keys = nominal_keys(options, start)
        return NominalRun(lambda: GymSimulator(make_env, SeedStart(), keys, **settings), make_policy, horizon)

    nominal = nominal_of(loaded.make)
    text, reason = chosen_oracle(options.get("oracle"), start, lambda: nominal(make_runner))
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
        code_sha256=code_digest(own_files(base, options)),
        solvable=getattr(start, "solvable", None),
        samples=SAMPLES,
        film_steps_per_second=frames_per_second(env),
        notes=(
            f"input: {start.label}",
            f"oracle: {text}, {reason}",
            *(f"policy: {note}" for note in loaded.notes),
            *limit_notes(limit, settings["endless_after"]),
        ),
    )
    random = partial(RandomActions, env.action_space)
    at_random = nominal_of(random)
    keys, has_other_horizon = language.info_keys(text), "horizon" in options
    checks = GymChecks(loaded, random, nominal, keys, has_other_horizon, at_random)
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
