"""How fast do walkers walk in lock-step? Against gymnasium's own step, one walker at a time."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Measurement, Track
from policyfuzz.core.target import Runner, Target
from policyfuzz.environments.families.bipedal_walker import ScriptedTypes
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.bipedal.networks import shipped_network
from policyfuzz.targets.bipedal.walkers import package
from policyfuzz.targets.registry import load_target

_ROUNDS = 5
_TOGETHER = 64
#: Episodes of the plain loop in a round, the first of those that walk together.
_ALONE = 16
_COMPARED = 8
_GOAL = 1.5

#: One observation (24,) to one action (4,).
Act = Callable[[NDArray[np.float32]], NDArray[np.float64]]


def run(track: Track) -> list[Measurement]:
    """Measure both on the same cases in turn, and compare their episodes bit for bit."""
    target, bank = load_target("bipedal"), shipped_network()
    runner = Runner(target)
    rng = np.random.default_rng(0)
    inputs = target.inputs.sample(rng, _TOGETHER)
    seeds = rng.integers(0, 2**63, _TOGETHER, dtype=np.uint64)
    with threadpool_limits(1):
        runner(inputs[:2], seeds[:2])  # compiles
        rounds = [
            (_together(runner, inputs, seeds), _alone(target, _by_numpy(bank), inputs[:_ALONE], seeds))
            for _ in track(range(_ROUNDS), "lock-step and plain loop in turn")
        ]
        different = _different(target, runner, bank, inputs[:_COMPARED], seeds)
    # the round in the middle: the machine's mood then hits both sides alike
    rate, plain = sorted(rounds, key=lambda one: one[0] / one[1])[_ROUNDS // 2]
    baseline = "gymnasium step by step, NumPy network"
    return [
        Measurement(baseline, plain, "steps/s"),
        Measurement(
            f"{_TOGETHER} walkers in lock-step",
            rate,
            "steps/s",
            baseline,
            rate / plain,
            f">= {_GOAL} x",
            rate / plain >= _GOAL,
        ),
        Measurement(
            f"episodes that differ from gymnasium's, of {_COMPARED}",
            different,
            "episodes",
            goal="0",
            is_met=different == 0,
        ),
    ]


def _together(runner: Runner, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> float:
    """Steps per second, resets included."""
    started = time.perf_counter()
    executions = runner(inputs, seeds)
    return float((executions.lengths - 1).sum()) / (time.perf_counter() - started)


def _alone(target: Target, act: Act, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> float:
    """Steps per second of the plain loop, resets included."""
    started, steps = time.perf_counter(), 0
    env = package().BipedalWalker(hardcore=True)
    for row, seed in zip(inputs, seeds.tolist(), strict=False):
        steps += len(_plain_rewards(env, act, row, seed, target.horizon))
    return steps / (time.perf_counter() - started)


def _plain_rewards(env: Any, act: Act, row: NDArray[np.float64], seed: int, horizon: int) -> list[float]:
    """Rewards of one episode of gymnasium's own environment."""
    env.np_random = ScriptedTypes(row.astype(np.int64).tolist(), seed)
    observation, _ = env.reset()
    rewards = []
    for _ in range(horizon):
        observation, reward, is_over, _, _ = env.step(act(observation))
        rewards.append(float(reward))
        if is_over:
            break
    return rewards


def _by_numpy(bank: MlpBank) -> Act:
    """The network as it is usually written; it may round otherwise than the bank."""
    layers = bank.layers()

    def act(observation: NDArray[np.float32]) -> NDArray[np.float64]:
        values: NDArray[Any] = observation
        for weights, bias in layers:
            values = np.tanh(values @ weights + bias)
        return values

    return act


def _different(
    target: Target, runner: Runner, bank: MlpBank, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]
) -> int:
    """How many episodes have another return in gymnasium's own environment, under the very same network."""

    def act(observation: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.asarray(bank(observation[None], np.zeros(1, np.int64))[0])

    returns = runner(inputs, seeds[: len(inputs)]).returns
    different = 0
    for row, seed, mine in zip(inputs, seeds.tolist(), returns.tolist(), strict=False):
        env = package().BipedalWalker(hardcore=True)  # one for each: used ones round otherwise
        total = 0.0
        for reward in _plain_rewards(env, act, row, seed, target.horizon):
            total += reward
        different += total != mine
    return different
