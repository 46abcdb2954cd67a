"""Walk held-out terrains and print how policies do: `python -m bipedal.evaluate`."""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from bipedal.walks import FULL, SHORT, Cases, Scores, acting, score
from policyfuzz.targets.bipedal.networks import network_in
from policyfuzz.targets.bipedal.simulator import WalkerSimulator

HEADER = (
    f"policy | falls, full | return, full | median | without falls | arrive | steps | falls in {SHORT} | "
    f"return after {SHORT}"
)


def main() -> None:
    """Print one line for each policy; all walk the same terrains."""
    arguments = _parser().parse_args()
    cases = Cases.random(np.random.default_rng(arguments.seed), arguments.episodes)
    print(f"{arguments.episodes} random terrains, seed {arguments.seed}; intervals are 95 %\n{HEADER}")
    simulator = WalkerSimulator()
    for path in arguments.policies:
        scores = score(simulator, acting(network_in(path)), cases, FULL)
        print(f"{path.name} | {_row(scores)}", flush=True)


def _row(scores: Scores) -> str:
    stays_up = ~scores.has_fallen
    arrives = stays_up & scores.has_ended
    return (
        f"{_share(scores.has_fallen)} | {_mean(scores.returns)} | {np.median(scores.returns):.1f} | "
        f"{_mean(scores.returns[stays_up])} | {_share(arrives)} | {scores.lengths[arrives].mean():.0f} | "
        f"{_share(scores.falls_early)} | {_mean(scores.short_returns)}"
    )


def _share(flags: NDArray[np.bool_]) -> str:
    """Per cent with its interval."""
    low, high = binomtest(int(flags.sum()), len(flags)).proportion_ci(method="wilson")
    return f"{100 * flags.mean():.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def _mean(values: NDArray[np.float64]) -> str:
    """Mean with its interval."""
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.1f} ({values.mean() - half:.1f} to {values.mean() + half:.1f})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policies", type=Path, nargs="+", help=".npz or .json")
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=777)
    return parser


if __name__ == "__main__":
    main()
