"""Cooperative navigation: three agents trained with MADDPG that cover three landmarks."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from policyfuzz.errors import PolicyError, UsageError, unknown_name
from policyfuzz.inputs import InputSpace, Real
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.target import Target
from policyfuzz.targets.coopnavi import layout
from policyfuzz.targets.coopnavi.actors import SpreadPolicy, actors_in, shipped_actors
from policyfuzz.targets.coopnavi.oracle import Collisions
from policyfuzz.targets.coopnavi.simulator import SpreadSimulator
from policyfuzz.targets.coopnavi.solvable import is_solvable

_NOISE = 0.05  #: of the published experiments
#: Values of the options that name none, in the order in which a target's name gives them.
_DEFAULTS = {
    "collisions": "5",
    "finish": "excuses",
    "horizon": "100",
    "landmarks": "yes",
    "starts": "solvable",
}
#: Fewer steps do not take an agent across the square and let it stop there.
_SHORTEST = 25


def make_target(options: Mapping[str, str], policy: str | None) -> Target:
    """The target; options see `_DEFAULTS`, policy: None for the shipped actors or coopnavi:FILE.npz."""
    chosen = _DEFAULTS | dict(options)
    limit = _number("collisions", chosen["collisions"], 0)
    horizon = _number("horizon", chosen["horizon"], _SHORTEST)
    finish = _choice("finish", chosen["finish"], ("excuses", "ends", "ignored"))
    moves_landmarks = _choice("landmarks", chosen["landmarks"], ("yes", "fixed")) == "yes"
    only_solvable = _choice("starts", chosen["starts"], ("solvable", "valid")) == "solvable"
    bank, uri = _actors(policy)
    return Target(
        name=_name(chosen),
        inputs=_inputs(moves_landmarks),
        simulator=partial(SpreadSimulator, ends_when_finished=finish != "ignored"),
        policy=lambda: SpreadPolicy(bank),
        oracle=Collisions(limit, excuses_finished=finish == "excuses"),
        horizon=horizon,
        policy_name=uri or "shipped actors",
        policy_uri=uri,
        policy_sha256=bank.sha256,
        solvable=partial(is_solvable, horizon=horizon) if only_solvable else None,
        batch_size=1024,
    )


def _actors(policy: str | None) -> tuple[MlpBank, str | None]:
    """The actors, and the text that loads them from any folder."""
    if policy is None:
        return shipped_actors(), None
    if not policy.startswith("coopnavi:"):
        raise PolicyError(
            f"coopnavi cannot use policy {policy!r}",
            hint="give --policy coopnavi:FILE.npz, three actors in the shipped or the public MADDPG layout",
        )
    path = Path(policy.removeprefix("coopnavi:")).expanduser()
    return actors_in(path), f"coopnavi:{path.resolve()}"


def _inputs(moves_landmarks: bool) -> InputSpace:
    """Starts of agents and landmarks; fixed landmarks are drawn too, but a mutant keeps its parent's."""
    return InputSpace(
        dimensions=tuple(
            Real(f"{thing}{number}_{axis}", -1.0, 1.0, noise=noise)
            for thing, noise in (("agent", _NOISE), ("landmark", _NOISE if moves_landmarks else 0.0))
            for number in (1, 2, 3)
            for axis in "xy"
        ),
        constraint=layout.is_valid,
        sampler=layout.sample,
    )


def _name(chosen: Mapping[str, str]) -> str:
    """The target's name with all options that are not as usual."""
    unusual = [f"{key}={chosen[key]}" for key, usual in _DEFAULTS.items() if chosen[key] != usual]
    return f"coopnavi:{','.join(unusual)}" if unusual else "coopnavi"


def _number(option: str, text: str, lowest: int) -> int:
    if not text.isdecimal() or int(text) < lowest:
        raise UsageError(f"{option} is {text!r}, expected a whole number, {lowest} or more")
    return int(text)


def _choice(option: str, text: str, known: tuple[str, ...]) -> str:
    if text not in known:
        raise unknown_name(f"value of option {option}", text, known)
    return text
