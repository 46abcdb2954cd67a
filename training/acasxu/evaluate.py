"""Fly held-out encounters with the networks and print how they do: `python -m acasxu.evaluate`."""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.acasxu import encounter
from policyfuzz.targets.acasxu.networks import networks_in
from policyfuzz.targets.acasxu.target import BUCKETS

#: Encounters flown at a time; small enough to stay in the cache.
CHUNK = 2048
DISCOUNT = 0.99
HEADER = (
    "bucket | collisions per 1,000 | straight-flight collisions avoided | collisions caused per 1,000 | "
    "mean return | time alerted, in encounters that straight flight survives"
)


@dataclass(frozen=True, slots=True)
class Flights:
    """What happened to each encounter, all (n,)."""

    crashed: NDArray[np.bool_]
    returns: NDArray[np.float64]
    alerted: NDArray[np.float64]  #: share of steps with an advisory other than clear of conflict


def main() -> None:
    """Print one line for straight flight and one for each bucket of each set of networks."""
    arguments = _parser().parse_args()
    inputs = held_out(arguments.seed, arguments.encounters)
    straight = ~encounter.survives_turning(inputs, 0)
    print(
        f"{arguments.encounters} encounters drawn with seed {arguments.seed}, {len(inputs)} of them valid "
        f"and solvable; straight flight collides in {straight.sum()}, {_per_thousand(straight)} per 1,000"
    )
    for path in filter(None, (arguments.networks, arguments.compare)):
        print(f"\n{path}")
        print(HEADER)
        for bucket in arguments.buckets:
            print(f"{bucket:6d} | {_row(fly(load(path, bucket), inputs), straight)}", flush=True)


def held_out(seed: int, count: int) -> NDArray[np.float64]:
    """The valid and solvable ones (n, 4) among `count` sampled encounters."""
    inputs = encounter.sample(np.random.default_rng(seed), count)
    inputs = inputs[encounter.is_valid(inputs)]
    return inputs[encounter.is_solvable_in_paper(inputs)]


def fly(bank: MlpBank, inputs: NDArray[np.float64]) -> Flights:
    """Fly encounters (n, 4) with five networks, one for each previous advisory."""
    parts = [_fly_chunk(bank, inputs[i : i + CHUNK]) for i in range(0, len(inputs), CHUNK)]
    return Flights(
        np.concatenate([part.crashed for part in parts]),
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.alerted for part in parts]),
    )


def _fly_chunk(bank: MlpBank, inputs: NDArray[np.float64]) -> Flights:
    count = len(inputs)
    flights = encounter.take_off(inputs)
    _, speeds = encounter.intruder_velocity(inputs)
    rows = np.arange(count)
    observations, ranges = np.empty((count, 5)), np.empty(count)
    advisories = np.zeros(count, np.int64)
    crashed, returns, alerted = np.zeros(count, np.bool_), np.zeros(count), np.zeros(count)
    encounter.observe(flights, speeds, rows, observations, ranges)
    for _ in range(encounter.STEPS):
        advisories = bank(observations, advisories).argmin(axis=1)
        encounter.fly(flights, rows, advisories)
        encounter.observe(flights, speeds, rows, observations, ranges)
        returns = DISCOUNT * returns + encounter.reward(ranges)
        crashed |= ranges < encounter.COLLISION_FEET
        alerted += (advisories > 0) / encounter.STEPS
    return Flights(crashed, returns, alerted)


def load(path: Path, bucket: int) -> MlpBank:
    """The five networks of a bucket, from a networks.npz or a folder of ONNX or .nnet files."""
    if path.is_dir():
        return networks_in(path, bucket)
    with np.load(path, allow_pickle=False) as arrays:
        sizes = tuple(int(size) for size in arrays["sizes"])
        return MlpBank.from_parameters(arrays["parameters"][bucket - 1 :: BUCKETS], sizes)


def _row(flights: Flights, straight: NDArray[np.bool_]) -> str:
    avoided = ~flights.crashed[straight]
    low, high = binomtest(int(avoided.sum()), len(avoided)).proportion_ci(method="wilson")
    return (
        f"{_per_thousand(flights.crashed)} | "
        f"{100 * avoided.mean():.2f} % ({100 * low:.2f} to {100 * high:.2f}) | "
        f"{_per_thousand(flights.crashed & ~straight)} | "
        f"{flights.returns[~flights.crashed].mean():.2f} | "
        f"{100 * flights.alerted.mean():.1f} %, {100 * flights.alerted[~straight].mean():.1f} %"
    )


def _per_thousand(flags: NDArray[np.bool_]) -> str:
    """Rate with its 95 % interval."""
    low, high = binomtest(int(flags.sum()), len(flags)).proportion_ci(method="wilson")
    return f"{1000 * flags.mean():.2f} ({1000 * low:.2f} to {1000 * high:.2f})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=Path, required=True, help="a networks.npz")
    parser.add_argument("--compare", type=Path, help="folder of ONNX or .nnet networks to fly as well")
    parser.add_argument("--buckets", type=int, nargs="+", default=[2], metavar="B", help="1 to 9")
    parser.add_argument("--encounters", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=777)
    return parser


if __name__ == "__main__":
    main()
