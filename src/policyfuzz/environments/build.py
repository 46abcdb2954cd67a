"""From environment objects of any kind and a policy to a target: the one builder."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from policyfuzz.core.code_files import code_digest
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.interfaces import Policy
from policyfuzz.core.target import IN_MEMORY, MakeRunner, Target, joined
from policyfuzz.environments.choices import (
    LIMITLESS,
    SAMPLES,
    absolute_options,
    chosen_oracle,
    limit_notes,
    nominal_keys,
    oracle_settings,
    own_files,
    simulator_settings,
)
from policyfuzz.environments.nominal import NominalChecks, NominalRun
from policyfuzz.environments.simulator import GymSimulator, RenderedGymSimulator
from policyfuzz.environments.starts import SeedStart, Start
from policyfuzz.oracles import language
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri import load_policy

#: Makes an environment object with all its wrappers.
MakeEnv = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class EnvironmentSource:
    """Environment objects of one kind, and what is different about that kind."""

    name: str  #: of the target, without options
    make: MakeEnv
    make_for_film: MakeEnv | None  #: they draw themselves, which may cost time; None if they cannot
    start: Start
    limit: int | None  #: steps after which an episode ends by itself, None if unknown
    random_policy: Callable[[], Policy]
    film_steps_per_second: int
    place: str = ""  #: of the user's code, MODULE:NAME or FILE.py:NAME
    simulator: type[GymSimulator] = GymSimulator
    film_simulator: type[GymSimulator] = RenderedGymSimulator
    settings: Mapping[str, Any] = field(default_factory=dict)  #: further ones of the simulator
    #: Wraps environments so that their `info` has these keys, for kinds that can add some.
    add_info: Callable[[MakeEnv, Sequence[str]], MakeEnv] | None = None
    first_notes: tuple[str, ...] = ()  #: of the target
    notes: tuple[str, ...] = ()

    def with_info(self, make: MakeEnv, keys: Sequence[str]) -> MakeEnv:
        """`make`, with `info` completed where that is possible."""
        return make if self.add_info is None else self.add_info(make, keys)


def build_target(
    source: EnvironmentSource, policy: LoadedPolicy, options: Mapping[str, str], make_runner: MakeRunner
) -> Target:
    """The target in which `policy` acts in the environments of `source`.

    `make_runner` runs the nominal episodes that a default oracle is chosen from.
    """
    # the factories use local names, so that workers get nothing else of the source; an error that names what
    # cannot be sent to workers shows these names
    start, horizon = source.start, LIMITLESS if source.limit is None else source.limit
    simulator, film_simulator = source.simulator, source.film_simulator
    settings = {**simulator_settings(options), **source.settings}

    def nominal_run(make_policy: Callable[[], Policy]) -> NominalRun:
        keys = nominal_keys(options, start)
        make_env = source.with_info(source.make, keys)
        return NominalRun(lambda: simulator(make_env, SeedStart(), keys, **settings), make_policy, horizon)

    nominal = nominal_run(policy.make)
    oracle, reason = chosen_oracle(options.get("oracle"), start, lambda: nominal(make_runner))
    info_keys = language.info_keys(oracle)
    settings |= oracle_settings(oracle, source.limit)
    make_env = source.with_info(source.make, info_keys)
    make_for_film = source.make_for_film and source.with_info(source.make_for_film, info_keys)
    named = options if oracle == start.oracle else {**options, "oracle": oracle}
    target = Target(
        name=joined(source.name, absolute_options(named)),
        inputs=start.inputs,
        simulator=lambda: simulator(make_env, start, info_keys, **settings),
        film_simulator=make_for_film
        and (lambda: film_simulator(make_for_film, start, info_keys, **settings)),
        policy=policy.make,
        oracle=language.parse(oracle),
        horizon=horizon,
        policy_name=policy.name,
        policy_uri=None if policy.uri.startswith(f"{IN_MEMORY}:") else policy.uri,
        policy_sha256=policy.sha256,
        code_sha256=code_digest(own_files(source.place, options)),
        solvable=getattr(start, "solvable", None),
        samples=SAMPLES,
        film_steps_per_second=source.film_steps_per_second,
        notes=(
            *source.first_notes,
            f"input: {start.label}",
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
        at_random=nominal_run(source.random_policy),
        info_keys=info_keys,
        has_other_horizon="horizon" in options,
    )
    return replace(target, further_checks=checks)


def policy_for(policy: Any, spaces: Spaces, trust: bool) -> LoadedPolicy:
    """`policy`, a URI or an object of this process, sure to act in `spaces`."""
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
    """What `env.NAME` options say, as the Python values that they look like."""
    return {key[4:]: literal(value) for key, value in options.items() if key.startswith("env.")}


def literal(text: str) -> Any:
    """`text` as the Python value that it looks like, else as text; true and false count too."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
