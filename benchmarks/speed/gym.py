"""How fast does a stable-baselines3 policy act in CartPole? Against the usual loop around predict."""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Measurement, Track
from policyfuzz.core.extras import load
from policyfuzz.core.target import Runner
from policyfuzz.targets.registry import load_target

_ROUNDS = 5
_TOGETHER = 256
#: Episodes of the plain loop in a round, the first of those that run together.
_ALONE = 16
#: Steps of training: a policy that balances the pole for a while.
_TRAINING_STEPS = 8192
_GOAL = 5.0


def run(track: Track) -> list[Measurement]:
    """Train a small policy, run the same episodes both ways in turn, and compare their returns."""
    torch = load("torch", "sb3")
    threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        torch.set_num_threads(1)  # one core on either side
        try:
            return _compare(Path(folder) / "ppo.zip", track)
        finally:
            torch.set_num_threads(threads)


def _compare(file: Path, track: Track) -> list[Measurement]:
    for _ in track(range(1), "training a policy"):
        model = _trained(file)
    runner = Runner(load_target("gym:CartPole-v1:input=seed", f"sb3:{file}", trust=True))
    seeds = np.arange(_TOGETHER, dtype=np.uint64)
    rounds = []
    for _ in track(range(_ROUNDS), "lock-step and plain loop in turn"):
        rate, returns = _together(runner, seeds)
        plain, plain_returns = _alone(model, seeds[:_ALONE])
        rounds.append((rate, plain, int((returns[:_ALONE] != plain_returns).sum())))
    # the round in the middle: the machine's mood then hits both sides alike
    rate, plain, _ = sorted(rounds, key=lambda one: one[0] / one[1])[_ROUNDS // 2]
    different = max(count for *_, count in rounds)
    baseline = "model.predict, one environment"
    goal = f">= {_GOAL:g} x"
    return [
        Measurement(baseline, plain, "steps/s"),
        Measurement(
            f"{_TOGETHER} in lock-step", rate, "steps/s", baseline, rate / plain, goal, rate / plain >= _GOAL
        ),
        Measurement(
            f"episodes with another return, of {_ALONE}",
            different,
            "episodes",
            goal="0",
            is_met=different == 0,
        ),
    ]


def _trained(file: Path) -> Any:
    """A PPO policy for CartPole, which is also saved to `file`."""
    algorithm = load("stable_baselines3", "sb3").PPO
    model = algorithm("MlpPolicy", "CartPole-v1", seed=0, device="cpu", n_steps=512)
    model.learn(_TRAINING_STEPS)
    model.save(file)
    return model


def _together(runner: Runner, seeds: NDArray[np.uint64]) -> tuple[float, NDArray[np.float64]]:
    """Steps per second, resets included, and the returns."""
    started = time.perf_counter()
    executions = runner(seeds.astype(np.float64)[:, None], seeds)
    seconds = time.perf_counter() - started
    return float((executions.lengths - 1).sum()) / seconds, executions.returns


def _alone(model: Any, seeds: NDArray[np.uint64]) -> tuple[float, NDArray[np.float64]]:
    """The same of the plain loop."""
    import gymnasium

    env = gymnasium.make("CartPole-v1")
    started, steps, returns = time.perf_counter(), 0, np.zeros(len(seeds))
    for row, seed in enumerate(seeds.tolist()):
        observation, _ = env.reset(seed=seed)
        is_over = False
        while not is_over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            returns[row] += float(reward)
            steps += 1
            is_over = terminated or truncated
    return steps / (time.perf_counter() - started), returns
