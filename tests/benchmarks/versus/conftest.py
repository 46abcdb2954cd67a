from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.versus.judge import Verdict
from benchmarks.versus.raw import RawTrial, Task
from benchmarks.versus.reference import Origin, ReferenceSet


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
    roots: tuple[int, ...] | None = None,
    courses: tuple[int, ...] | None = None,
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
        },
        "has_roots": roots is not None,
        "has_courses": courses is not None,
        "outcomes": np.arange(1, count + 1, dtype=np.uint64),
    }
    return RawTrial(
        task=Task(label, target or label, None, contestant, seed, episodes),
        numbers=np.array(numbers, np.int64),
        times=np.array(numbers, np.float64) / episodes * 10,
        inputs=np.zeros((count, 4)),
        unit=np.zeros((count, 4)),
        seeds=np.arange(count, dtype=np.uint64),
        verdicts=judged,
        behaviours=np.zeros((count, 2), np.float32),
        regions=np.array(regions or [-1] * count, np.int64),
        courses=np.array([0] * count if courses is None else courses, np.uint64),
        roots=np.array([-1] * count if roots is None else roots, np.int64),
        distinct=fits,
        close=fits,
        near=fits,
        far=fits,
        behaviour=fits,
        **{**facts, **more},
    )


@pytest.fixture(scope="session")
def made_trial() -> Callable[..., RawTrial]:
    return make_trial


def make_reference(unit: np.ndarray, label: str = "acasxu", **origin: str) -> ReferenceSet:
    """A made-up set of random crashes at `unit` (m, d), made for the trials of `make_trial`."""
    facts: dict[str, Any] = {"target": label, "policy_sha256": "", "rules": "", "solvable": "", "oracle": ""}
    seeds = np.zeros(len(unit), np.uint64)
    return ReferenceSet(
        origin=Origin(label, **{**facts, **origin}),
        rounds=1,
        episodes=1000,
        code="abc",
        inputs=unit,
        unit=unit,
        seeds=seeds,
        periods=np.zeros(unit.shape[1]),
    )


@pytest.fixture(scope="session")
def made_reference() -> Callable[..., ReferenceSet]:
    return make_reference


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
