"""Drive held-out episodes with teacher and student and print how they end: `python -m driving.evaluate`.

Finished episodes are kept in a file; a run that was interrupted goes on after the last of them.
"""

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from driving.episodes import draw_inputs, drive
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.driving.networks import DrivingPolicy, expert, network_in
from policyfuzz.targets.driving.roads import ROADS
from policyfuzz.targets.driving.simulator import DrivingSimulator

STEP_SECONDS = 0.1
FINE = ("arrived", "survived", "struck")
OUTCOMES = (*FINE, "collision", "off-road")


def main() -> None:
    """Print one table for each driver: all roads together, then each of them."""
    arguments = _parser().parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    inputs = draw_inputs(np.random.default_rng(arguments.seed), arguments.episodes)
    print(f"{len(inputs)} episodes of {arguments.horizon} steps, inputs drawn with seed {arguments.seed}")
    drivers = {"expert": expert()} if arguments.teacher else {}
    for file in arguments.networks:
        drivers[str(file)] = network_in(file)
    for name, bank in drivers.items():
        kept = arguments.work / f"{bank.sha256[:12]}-{arguments.seed}-{arguments.horizon}.jsonl"
        ends = driven(bank, inputs, arguments.horizon, kept)
        print(f"\n{name}\n{table(inputs, ends)}", flush=True)


@dataclass(frozen=True, slots=True)
class End:
    """How an episode ended."""

    outcome: str
    steps: int
    metres: float


def driven(bank: MlpBank, inputs: NDArray[np.float64], horizon: int, kept: Path) -> list[End]:
    """How each episode ends under the network in `bank`; `kept` holds those that are known already."""
    known = [End(**json.loads(line)) for line in kept.read_text().splitlines()] if kept.exists() else []
    simulator, policy = DrivingSimulator(), DrivingPolicy(bank)
    with kept.open("a") as file:
        for number in range(len(known), len(inputs)):
            episode = drive(
                simulator,
                inputs[number],
                lambda observation: policy.act(observation[None], np.zeros(1, np.int64))[0],
                horizon,
            )
            known.append(End(episode.outcome, len(episode.observations), episode.metres))
            file.write(json.dumps(asdict(known[-1])) + "\n")
            file.flush()
            if (number + 1) % 50 == 0:
                print(f"{kept.name}: {number + 1} episodes", file=sys.stderr, flush=True)
    return known[: len(inputs)]


def table(inputs: NDArray[np.float64], ends: list[End]) -> str:
    """A line for all roads and one for each: share without a crash, mean speed, and how they ended."""
    lines = ["| road | episodes | no crash | m/s | " + " | ".join(OUTCOMES) + " |"]
    for name, number in [("all", None), *((road.name, number) for number, road in enumerate(ROADS))]:
        some = [end for row, end in zip(inputs, ends, strict=True) if number is None or row[0] == number]
        count, fine = Counter(end.outcome for end in some), sum(end.outcome in FINE for end in some)
        low, high = binomtest(fine, len(some)).proportion_ci(method="wilson")
        share = f"{100 * fine / len(some):.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        speed = sum(end.metres for end in some) / sum(STEP_SECONDS * end.steps for end in some)
        counts = " | ".join(str(count[outcome]) for outcome in OUTCOMES)
        lines.append(f"| {name} | {len(some)} | {share} | {speed:.2f} | {counts} |")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=Path, nargs="*", default=[], help=".npz files of students")
    parser.add_argument("--teacher", action="store_true", help="drive with the expert as well")
    parser.add_argument("--work", type=Path, required=True, help="folder for finished episodes")
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--horizon", type=int, default=200)
    parser.add_argument("--seed", type=int, default=777)
    return parser


if __name__ == "__main__":
    main()
