"""Cooperative navigation: three agents trained with MADDPG that cover three landmarks."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from policyfuzz.core.actions import ActionSpace, Macro
from policyfuzz.core.inputs import InputSpace, Real, UniformMap
from policyfuzz.core.oracle import Composable
from policyfuzz.core.target import Target, choice, joined, number, policy_path
from policyfuzz.oracles import NONE, Trajectories, Verdicts
from policyfuzz.targets.coopnavi.actors import SpreadPolicy, actors_in, shipped_actors
from policyfuzz.targets.coopnavi.layout import is_solvable, is_valid, sample
from policyfuzz.targets.coopnavi.physics import AGENTS
from policyfuzz.targets.coopnavi.simulator import SpreadSimulator

_NOISE = 0.05  #: of the published experiments
#: Options by default, in the order in which a target's name gives them.
_USUAL = {"collisions": 5, "finish": "excuses", "horizon": 100, "landmarks": "yes", "starts": "solvable"}
#: Fewer steps do not take an agent across the square and let it stop there.
_SHORTEST = 25
_LONGEST = 100_000
#: Near misses that count as most of a collision, and the largest part of one that any number counts as.
_MANY_NEAR_MISSES, _LARGEST_PART = 10.0, 0.999


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
        oracle=Collisions(limit, excuses_finished=finish == "excuses", horizon=horizon),
        horizon=horizon,
        policy_name=uri or "shipped actors",
        policy_uri=uri,
        policy_sha256=bank.sha256,
        solvable=partial(is_solvable, horizon=horizon) if starts == "solvable" else None,
        actions=_actions(),
        batch_size=1024,
        compiles=True,
    )


def _actions() -> ActionSpace:
    """Five weights for each agent; a macro gives all weight to one of them."""
    words = ("rest", "right", "left", "up", "down")
    weights = np.eye(len(words))
    macros = tuple(Macro(word, tuple(row)) for word, row in zip(words, weights.tolist(), strict=True))
    one = ActionSpace(weights[0] * 0.0, weights[0] * 0.0 + 1.0, np.zeros(len(words), np.bool_), macros, words)
    return ActionSpace.joint([(f"agent {number}", one) for number in range(1, AGENTS + 1)])


@dataclass(frozen=True)
class Collisions(Composable):
    """Fires when agents collide in more than `limit` pair-steps; its step is the one that goes beyond.

    With `excuses_finished` an episode in which all agents arrive at landmarks is no crash. Its margin is the
    number of colliding pair-steps that are missing, less a part of one for near misses; and the share of the
    time that was left when they arrived. Arriving counts as one collision at most: agents that collide a lot
    and arrive are nearer to a crash than agents that never meet and do not.
    """

    limit: int
    excuses_finished: bool
    horizon: int

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("collision",)

    @property
    def accumulated_kinds(self) -> tuple[str, ...]:
        return self.kinds if self.limit else ()

    def judge(self, trajectories: Trajectories) -> Verdicts:
        counted = trajectories.counted
        collisions = trajectories.signal("collisions")
        too_many = counted & (collisions > self.limit)
        crashed = too_many.any(axis=1)
        missing = self.limit + 1 - np.where(counted, collisions, 0.0).max(axis=1)
        near_misses = np.where(counted, trajectories.signal("near misses"), 0.0).max(axis=1)
        part = -np.expm1(-near_misses / _MANY_NEAR_MISSES) * _LARGEST_PART
        margins = np.where(missing > 0, missing - part, missing)
        if self.excuses_finished:
            arrived = counted & (trajectories.signal("finished") > 0)
            finished = arrived.any(axis=1)
            crashed &= ~finished
            left = 1 - arrived.argmax(axis=1) / (self.horizon + 1)
            margins = np.where(finished, np.maximum(margins, 0.0) + left, margins)
        return Verdicts(
            kinds=np.where(crashed, 0, NONE),
            steps=np.where(crashed, too_many.argmax(axis=1), NONE),
            margins=margins,
        )


def _inputs(moves_landmarks: bool) -> InputSpace:
    """Starts of agents and landmarks; fixed landmarks are drawn too, but a mutant keeps its parent's."""
    dimensions = tuple(
        Real(f"{thing}{which}_{axis}", -1.0, 1.0, noise=noise)
        for thing, noise in (("agent", _NOISE), ("landmark", _NOISE if moves_landmarks else 0.0))
        for which in (1, 2, 3)
        for axis in "xy"
    )
    # uniform in the square where it is valid: `sample` draws again where it is not
    even = UniformMap(len(dimensions), InputSpace(dimensions).from_unit)
    return InputSpace(dimensions, constraint=is_valid, sampler=sample, uniform_map=even)


def _name(chosen: tuple[object, ...]) -> str:
    """The target's name with all options that are not as usual."""
    pairs = zip(_USUAL.items(), chosen, strict=True)
    return joined("coopnavi", {option: str(value) for (option, usual), value in pairs if value != usual})
