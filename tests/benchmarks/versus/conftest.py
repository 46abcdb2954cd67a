from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.versus.judge import Verdict
from benchmarks.versus.raw import RawTrial, Task


def make_trial(
    contestant: str = "default",
    seed: int = 0,
    numbers: tuple[int, ...] = (),
    label: str = "acasxu",
    episodes: int = 20_000,
    target: str | None = None,
    distinct: tuple[bool, ...] | None = None,
    verdicts: tuple[Verdict, ...] | None = None,
    regions: tuple[int, ...] = (),
    **more: object,
) -> RawTrial:
    """A made-up trial with a claim at each of `numbers`, by default a distinct finding."""
    count = len(numbers)
    judged = np.array(verdicts if verdicts is not None else [Verdict.FINDING] * count, np.int8)
    found = judged == Verdict.FINDING
    fits = found if distinct is None else np.array(distinct, np.bool_)
    facts: dict[str, Any] = {
        "episodes": episodes,
        "seconds": 10.0,
        "cpu_seconds": 5.0,
        "simulated_seconds": 8.0,
        "known_regions": max(regions, default=-1) + 1,
        "about": {
            "command": "python -m benchmarks versus --seeds 10",
            "machine": "a machine",
            "python": "3.11.0",
            "versions": {"policyfuzz": "1.2.3"},
            "code": "abc",
            "date": "2024-05-06T07:08:09+00:00",
            "dimensions": 4,
            "policy_sha256": "",
        },
    }
    return RawTrial(
        task=Task(label, target or label, None, contestant, seed, episodes),
        numbers=np.array(numbers, np.int64),
        times=np.array(numbers, np.float64) / episodes * 10,
        inputs=np.zeros((count, 4)),
        seeds=np.arange(count, dtype=np.uint64),
        verdicts=judged,
        behaviours=np.zeros((count, 2), np.float32),
        regions=np.array(regions or [-1] * count, np.int64),
        distinct=fits,
        apart=fits,
        behaviour=fits,
        **{**facts, **more},
    )


@pytest.fixture(scope="session")
def made_trial() -> Callable[..., RawTrial]:
    return make_trial


def spread(count: int, seed: int, episodes: int = 20_000) -> tuple[int, ...]:
    """So many claims, and as many more as the seed says, over all episodes."""
    count += seed
    return tuple(1 + position * episodes // max(count, 1) for position in range(count))


@pytest.fixture(scope="session")
def trials() -> Callable[..., list[RawTrial]]:
    """Trials of contestants that find so many a trial, and one more with each further seed."""

    def make(seeds: int = 10, label: str = "acasxu", episodes: int = 20_000, **counts: int) -> list[RawTrial]:
        return [
            make_trial(
                name.replace("_", "-"), seed, spread(count, seed, episodes), label=label, episodes=episodes
            )
            for name, count in counts.items()
            for seed in range(seeds)
        ]

    return make
