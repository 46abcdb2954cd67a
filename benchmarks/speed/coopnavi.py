"""How fast are three agents? The vectorised simulator against mpe2, one environment at a time."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measurement import Measurement, Track, best_seconds
from policyfuzz.core.extras import load
from policyfuzz.core.target import Runner
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.coopnavi.actors import shipped_actors
from policyfuzz.targets.coopnavi.target import make_target

Vector = NDArray[np.float32]
Actor = Callable[[Vector], Vector]

_ROUNDS = 3
_BATCHES = 4
_MPE2_EPISODES = 5
#: mpe2 counts left before right and down before up.
_MPE2_ORDER = [0, 2, 1, 4, 3]


def run(track: Track) -> list[Measurement]:
    """Measure episodes of 100 steps with the shipped actors, both in turn: they then meet the same machine.

    No episode ends before its last step on either side.
    """
    target = make_target({"finish": "ignored"}, None)
    runner = Runner(target)
    inputs = target.inputs.sample(np.random.default_rng(0), _BATCHES * target.batch_size)
    batches = np.array_split(inputs, _BATCHES)
    seeds = np.zeros(target.batch_size, np.uint64)
    env = load("mpe2.simple_spread_v3", "bench").parallel_env(
        max_cycles=target.horizon, continuous_actions=True
    )
    actors = _plain_actors(shipped_actors())
    runner(batches[0], seeds)  # compiles
    rounds: list[tuple[float, float]] = []
    for _ in track(range(_ROUNDS), "ours and mpe2 in turn"):
        ours = len(inputs) / best_seconds(lambda: [runner(batch, seeds) for batch in batches], 1)
        theirs = _MPE2_EPISODES / best_seconds(lambda: _run_mpe2(env, actors, target.horizon), 1)
        rounds.append((ours, theirs))
    ours, theirs = sorted(rounds, key=lambda one: one[0] / one[1])[_ROUNDS // 2]
    ratio = ours / theirs
    return [
        Measurement("mpe2, one environment at a time", theirs, "episodes/s"),
        Measurement(
            f"coopnavi, {target.batch_size} at once",
            ours,
            "episodes/s",
            "mpe2",
            ratio,
            ">= 50 x",
            ratio >= 50,
        ),
    ]


def _run_mpe2(env: Any, actors: list[Actor], horizon: int) -> None:
    """Run episodes as one writes it by hand: every agent acts at each step of one environment."""
    for episode in range(_MPE2_EPISODES):
        observations, _ = env.reset(seed=episode)
        for _ in range(horizon):
            actions = {
                agent: actor(observations[agent]) for agent, actor in zip(env.agents, actors, strict=True)
            }
            observations, *_ = env.step(actions)


def _plain_actors(bank: MlpBank) -> list[Actor]:
    """The networks of `bank` as NumPy products of one row, which is what suits one environment best."""
    networks = [
        [(weights.astype(np.float32), bias.astype(np.float32)) for weights, bias in bank.layers(number)]
        for number in range(len(bank.parameters))
    ]
    return [partial(_act, layers) for layers in networks]


def _act(layers: list[tuple[Vector, Vector]], values: Vector) -> Vector:
    *hidden, (weights, bias) = layers
    for hidden_weights, hidden_bias in hidden:
        values = np.maximum(values @ hidden_weights + hidden_bias, 0)
    logits = values @ weights + bias
    action = np.exp(logits - logits.max())
    weighted: Vector = (action / action.sum())[_MPE2_ORDER]
    return weighted
