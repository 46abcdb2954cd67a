"""How much of the machine does a campaign use? Against the bare matrix products of its networks."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.campaigns import run_campaign
from benchmarks.measurement import Measurement, Track, best_seconds
from policyfuzz.core.settings import CampaignOptions
from policyfuzz.store.records import Progress
from policyfuzz.targets.registry import load_target

#: The mutations of the paper's twelve-hour campaign.
_EXECUTIONS = 161_543
_OPTIONS = CampaignOptions(strategy="mdpfuzz")
_ROUNDS = 3
_ROWS = 1024
#: Enough to take about a second.
_BARE_EPISODES = 20 * _ROWS
#: Widths of the ACAS Xu networks.
_WIDTHS = (5, 50, 50, 50, 50, 50, 50, 5)


def run(track: Track) -> list[Measurement]:
    """Measure whole campaigns and bare products in turn, so that both meet the same machine."""
    target = load_target("acasxu")
    run_campaign(target, 3000, _OPTIONS)  # compiles
    rounds: list[tuple[float, float, Progress]] = []
    for _ in track(range(_ROUNDS), "campaigns and products in turn"):
        bare, bare_32 = (_bare_rate(kind, target.horizon) for kind in (np.float64, np.float32))
        rounds.append((bare, bare_32, run_campaign(target, _EXECUTIONS, _OPTIONS)))
    # the round in the middle: the machine's mood then hits both sides alike
    bare, bare_32, best = sorted(rounds, key=lambda one: one[2].executions_per_second / one[0])[_ROUNDS // 2]
    rate = best.executions_per_second
    overhead = (best.density_seconds + best.search_seconds + best.store_seconds) / best.seconds
    lines = [
        Measurement("bare products, float64", bare, "episodes/s"),
        Measurement("bare products, float32", bare_32, "episodes/s"),
        Measurement(
            "whole campaign, mdpfuzz",
            rate,
            "episodes/s",
            "bare products, float64",
            rate / bare,
            ">= 50 %",
            rate / bare >= 0.5,
        ),
        Measurement("whole campaign, mdpfuzz", rate, "episodes/s", "bare products, float32", rate / bare_32),
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


def _bare_rate(kind: type[np.floating], horizon: int) -> float:
    """Episodes per second if there were nothing but the seven matrix products of a decision, on one core."""
    rng = np.random.default_rng(0)
    layers = [
        (rng.normal(size=(n_in, n_out)) / np.sqrt(n_in)).astype(kind) for n_in, n_out in pairwise(_WIDTHS)
    ]
    rows: NDArray[np.floating] = rng.normal(size=(_ROWS, _WIDTHS[0])).astype(kind)
    batches = _BARE_EPISODES // _ROWS

    def episodes() -> None:
        for _ in range(batches * horizon):
            values = rows
            for layer in layers:
                values = values @ layer

    with threadpool_limits(1):
        return batches * _ROWS / best_seconds(episodes, 1)
