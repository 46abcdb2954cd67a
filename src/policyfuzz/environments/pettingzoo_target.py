"""From the name of a PettingZoo parallel environment and its policies to a target.

In some the observations are pictures, and stay black where nobody asked for pictures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from policyfuzz.core.code_files import code_digest
from policyfuzz.core.errors import unknown_name
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
from policyfuzz.environments.find_start import find_parallel_start
from policyfuzz.environments.gymnasium import literal
from policyfuzz.environments.input_changes import read_changes
from policyfuzz.environments.joint_policy import JointPolicy, Share, joint_policy, load_shares
from policyfuzz.environments.nominal import GymChecks, NominalRun, RandomActions
from policyfuzz.environments.parallel import (
    REWARDS,
    Agents,
    ParallelSimulator,
    RenderedParallelSimulator,
)
from policyfuzz.environments.particle_worlds import COLLISIONS, CountsContacts, is_particle_world
from policyfuzz.environments.pettingzoo import ParallelEnvironment, full_name
from policyfuzz.environments.starts import SeedStart
from policyfuzz.oracles import language

#: Steps in which a difference would show.
_STEPS = 5


def is_seen_alike(make_one: Callable[[], Any], make_other: Callable[[], Any]) -> bool:
    """True where random actions from one seed lead to equal observations in both environments."""
    from gymnasium.utils.env_checker import data_equivalence

    one, other = make_one(), make_other()
    try:
        seen = [env.reset(seed=0)[0] for env in (one, other)]
        for step in range(_STEPS):
            if not data_equivalence(*seen):
                return False
            actions = {agent: _drawn(one.action_space(agent), step) for agent in one.agents}
            if not actions:
                break
            seen = [env.step(actions)[0] for env in (one, other)]
        return bool(data_equivalence(*seen))
    except Exception:  # an environment in trouble; nothing is known of it
        return False
    finally:
        one.close()
        other.close()


def _drawn(space: Any, seed: int) -> Any:
    """An action."""
    space.seed(seed)
    return space.sample()


_OPTIONS = ("oracle", "input", "horizon", "env.", "reward", "wrap", "fresh", "infinite", "render", "patience")


def make_target(
    rest: str,
    options: Mapping[str, str],
    policy: str | None,
    trust: bool = False,
    make_runner: MakeRunner = Runner,
) -> Target:
    """The target of the environment called `rest`, acted in by the policies of these URIs."""
    return build_target(
        f"pettingzoo:{full_name(rest)}",
        rest,
        options,
        lambda agents: load_shares(policy, agents, trust),
        make_runner,
    )


def build_target(
    base: str,
    environment: str,
    options: Mapping[str, str],
    load: Callable[[Agents], list[Share]],
    make_runner: MakeRunner,
) -> Target:
    """The target of the environment of this name; `base` is its own name without options."""
    check_options("pettingzoo", options, _OPTIONS)
    horizon = number(options, "horizon", 1, int, 1, LONGEST) if "horizon" in options else None
    plain = _environment(full_name(environment), options, horizon)
    drawn = _made_for_film(plain, options)
    make_env = drawn if drawn is not None and not is_seen_alike(plain, drawn) else plain
    env = make_env()
    agents = Agents.of(env)
    reward = _reward(options, agents)
    limit = horizon or _limit(env)
    steps = limit or LIMITLESS
    shares = load(agents)
    loaded = joint_policy(shares, agents, _recorded_return(shares, agents, reward))
    start = find_parallel_start(env, read_changes(options.get("input", "")))
    settings = simulator_settings(options) | {"reward": reward, "cut_after": horizon}

    def nominal_of(make_policy: Callable[[], Policy]) -> NominalRun:
        keys = nominal_keys(options, start)
        make = _told_of_contacts(make_env, env, keys)
        return NominalRun(lambda: ParallelSimulator(make, SeedStart(), keys, **settings), make_policy, steps)

    nominal = nominal_of(loaded.make)
    text, reason = chosen_oracle(options.get("oracle"), start, lambda: nominal(make_runner))
    info_keys = language.info_keys(text)
    settings |= oracle_settings(text, limit)
    for_search = _told_of_contacts(make_env, env, info_keys)
    for_film = drawn and _told_of_contacts(drawn, env, info_keys)
    target = Target(
        name=joined(base, absolute_options({**options, "oracle": text})),
        inputs=start.inputs,
        simulator=lambda: ParallelSimulator(for_search, start, info_keys, **settings),
        film_simulator=for_film
        and (lambda: RenderedParallelSimulator(for_film, start, info_keys, **settings)),
        policy=loaded.make,
        oracle=language.parse(text),
        horizon=steps,
        policy_name=loaded.name,
        policy_uri=loaded.uri,
        policy_sha256=loaded.sha256,
        code_sha256=code_digest(own_files(f"pettingzoo:{make_env.place}", options)),
        solvable=getattr(start, "solvable", None),
        samples=SAMPLES,
        film_steps_per_second=frames_per_second(env),
        notes=(
            f"agents: {', '.join(agents.names)}",
            f"input: {start.label}",
            f"oracle: {text}, {reason}",
            f"reward: {_in_words(reward)}",
            *(f"policy: {note}" for note in loaded.notes),
            *limit_notes(limit, settings["endless_after"]),
        ),
    )
    at_random = nominal_of(lambda: _random(agents))
    checks = GymChecks(loaded, lambda: _random(agents), nominal, info_keys, "horizon" in options, at_random)
    return replace(target, further_checks=checks.of(target))


def _environment(name: str, options: Mapping[str, str], horizon: int | None) -> ParallelEnvironment:
    """How to make the environment: with its own time limit set, where it takes that."""
    given = {key[4:]: literal(value) for key, value in options.items() if key.startswith("env.")}
    environment = ParallelEnvironment(name, given, wrappers_of(options))
    if horizon is None or "max_cycles" in given or not environment.takes(max_cycles=horizon):
        return environment
    return environment.given(max_cycles=horizon)


def _made_for_film(plain: ParallelEnvironment, options: Mapping[str, str]) -> ParallelEnvironment | None:
    """How to make the environment so that it draws itself, which may cost time also where nobody looks."""
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


def _told_of_contacts(make_env: Callable[[], Any], env: Any, info_keys: Sequence[str]) -> Callable[[], Any]:
    """Environments that count collisions, where it is asked for and they do not do so by themselves."""
    is_asked = any(key.rpartition(".")[2] == COLLISIONS for key in info_keys)
    return (lambda: CountsContacts(make_env())) if is_asked and is_particle_world(env.unwrapped) else make_env


def _limit(env: Any) -> int | None:
    """Steps after which the environment ends an episode by itself, None where nobody knows."""
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


def _recorded_return(shares: list[Share], agents: Agents, reward: str) -> float | None:
    """What the episodes of a shared policy returned in training, where each agent's was one of its own."""
    recorded = shares[0].loaded.recorded_return
    if len(shares) > 1 or recorded is None or reward not in ("sum", "mean"):
        return None
    return recorded * len(agents) if reward == "sum" else recorded


def _random(agents: Agents) -> JointPolicy:
    """Acts at random; agents with one action space draw from it in turn."""
    columns: list[tuple[Any, list[int]]] = []
    for column, space in enumerate(agents.action_spaces):
        alike = next((found for known, found in columns if known == space), None)
        if alike is None:
            columns.append((space, [column]))
        else:
            alike.append(column)
    return JointPolicy(agents, [(RandomActions(space), tuple(found)) for space, found in columns])
