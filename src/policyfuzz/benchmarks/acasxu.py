"""How much of the machine does a campaign use? Against the bare matrix products of its networks."""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from policyfuzz.benchmarks.measurement import Measurement, Track, best_seconds
from policyfuzz.campaign.budget import Budget
from policyfuzz.campaign.config import CampaignConfig
from policyfuzz.campaign.engine import Campaign
from policyfuzz.campaign.records import Progress
from policyfuzz.campaign.store import CampaignWriter
from policyfuzz.target import Target
from policyfuzz.targets.registry import load_target

_EXECUTIONS = 60_000
_ROUNDS = 3
_ROWS = 1024
#: Widths of the ACAS Xu networks.
_WIDTHS = (5, 50, 50, 50, 50, 50, 50, 5)


def run(track: Track) -> list[Measurement]:
    """Measure whole campaigns and bare products in turn, so that both meet the same machine."""
    target = load_target("acasxu")
    _campaign(target, 3000)  # compiles
    bare, bare_32 = float("inf"), float("inf")
    rounds: list[Progress] = []
    for _ in track(range(_ROUNDS), "campaigns and products in turn"):
        bare = min(bare, _bare_seconds_per_decision(np.float64))
        bare_32 = min(bare_32, _bare_seconds_per_decision(np.float32))
        rounds.append(_campaign(target, _EXECUTIONS))
    best = max(rounds, key=lambda progress: progress.executions_per_second)
    rate = best.executions_per_second
    bare_rate, bare_rate_32 = (1 / (seconds * target.horizon) for seconds in (bare, bare_32))
    overhead = (best.density_seconds + best.search_seconds + best.store_seconds) / best.seconds
    lines = [
        Measurement("bare products, float64", bare_rate, "episodes/s"),
        Measurement("bare products, float32", bare_rate_32, "episodes/s"),
        Measurement(
            "whole campaign, mdpfuzz",
            rate,
            "episodes/s",
            "bare products, float64",
            rate / bare_rate,
            ">= 50 %",
            rate / bare_rate >= 0.5,
        ),
        Measurement(
            "whole campaign, mdpfuzz", rate, "episodes/s", "bare products, float32", rate / bare_rate_32
        ),
        Measurement(
            "search + density + store",
            overhead * 100,
            "% of the time",
            goal="<= 20 %",
            is_met=overhead <= 0.2,
        ),
    ]
    for name, seconds in best.time_split.items():
        lines.append(Measurement(f"  {name}", seconds / best.seconds * 100, "% of the time"))
    return lines


def _campaign(target: Target, executions: int) -> Progress:
    config = CampaignConfig(target.name, strategy="mdpfuzz", batch_size=target.batch_size)
    with tempfile.TemporaryDirectory() as folder:
        store = CampaignWriter.create(Path(folder), config, target.inputs)
        try:
            Campaign(target, store, Budget(executions=executions)).run()
            return store.progress()
        finally:
            store.close()


def _bare_seconds_per_decision(kind: type[np.floating]) -> float:
    """Nothing but the seven matrix products of 1,024 decisions, on one core."""
    rng = np.random.default_rng(0)
    layers = [
        (rng.normal(size=(n_in, n_out)) / np.sqrt(n_in)).astype(kind) for n_in, n_out in pairwise(_WIDTHS)
    ]
    rows: NDArray[np.floating] = rng.normal(size=(_ROWS, _WIDTHS[0])).astype(kind)

    def products() -> None:
        values = rows
        for layer in layers:
            values = values @ layer

    with threadpool_limits(1):
        return best_seconds(products, 100) / _ROWS
