"""Cooperative navigation: three agents trained with MADDPG that cover three landmarks."""

from collections.abc import Mapping
from functools import partial

from policyfuzz.inputs import InputSpace, Real
from policyfuzz.target import Target
from policyfuzz.targets.coopnavi import layout
from policyfuzz.targets.coopnavi.actors import SpreadPolicy, actors_in, shipped_actors
from policyfuzz.targets.coopnavi.oracle import Collisions
from policyfuzz.targets.coopnavi.simulator import SpreadSimulator
from policyfuzz.targets.coopnavi.solvable import is_solvable
from policyfuzz.targets.options import choice, number, policy_path

_NOISE = 0.05  #: of the published experiments
#: Options by default, in the order in which a target's name gives them.
_USUAL = {"collisions": 5, "finish": "excuses", "horizon": 100, "landmarks": "yes", "starts": "solvable"}
#: Fewer steps do not take an agent across the square and let it stop there.
_SHORTEST = 25
_LONGEST = 100_000


def make_target(options: Mapping[str, str], policy: str | None) -> Target:
    """The target; options see `_USUAL`, policy: None for the shipped actors or coopnavi:FILE.npz."""
    limit = number(options, "collisions", 5, int, 0, 3 * _LONGEST)
    finish = choice(options, "finish", ("excuses", "ends", "ignored"))
    horizon = number(options, "horizon", 100, int, _SHORTEST, _LONGEST)
    landmarks = choice(options, "landmarks", ("yes", "fixed"))
    starts = choice(options, "starts", ("solvable", "valid"))
    file = policy_path("coopnavi", policy, "coopnavi", "FILE.npz, actors as shipped or in the public layout")
    bank = shipped_actors() if file is None else actors_in(file)
    uri = None if file is None else f"coopnavi:{file}"
    return Target(
        name=_name((limit, finish, horizon, landmarks, starts)),
        inputs=_inputs(moves_landmarks=landmarks == "yes"),
        simulator=partial(SpreadSimulator, ends_when_finished=finish != "ignored"),
        policy=lambda: SpreadPolicy(bank),
        oracle=Collisions(limit, excuses_finished=finish == "excuses"),
        horizon=horizon,
        policy_name=uri or "shipped actors",
        policy_uri=uri,
        policy_sha256=bank.sha256,
        solvable=partial(is_solvable, horizon=horizon) if starts == "solvable" else None,
        batch_size=1024,
    )


def _inputs(moves_landmarks: bool) -> InputSpace:
    """Starts of agents and landmarks; fixed landmarks are drawn too, but a mutant keeps its parent's."""
    return InputSpace(
        dimensions=tuple(
            Real(f"{thing}{which}_{axis}", -1.0, 1.0, noise=noise)
            for thing, noise in (("agent", _NOISE), ("landmark", _NOISE if moves_landmarks else 0.0))
            for which in (1, 2, 3)
            for axis in "xy"
        ),
        constraint=layout.is_valid,
        sampler=layout.sample,
    )


def _name(chosen: tuple[object, ...]) -> str:
    """The target's name with all options that are not as usual."""
    pairs = zip(_USUAL.items(), chosen, strict=True)
    unusual = [f"{option}={value}" for (option, usual), value in pairs if value != usual]
    return f"coopnavi:{','.join(unusual)}" if unusual else "coopnavi"
