"""Run held-out episodes with the actors and print how they do: `python -m coopnavi.evaluate`."""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.coopnavi import layout, physics
from policyfuzz.targets.coopnavi.actors import act, actors_in
from policyfuzz.targets.coopnavi.solvable import is_solvable

#: Colliding pair-steps that are still no crash.
LIMIT = 5
HEADER = (
    "steps | covered | touched | finished | colliding pair-steps per episode | mean return | "
    "crashes per 1,000: excused when finished | until finished | throughout"
)


@dataclass(frozen=True, slots=True)
class Episodes:
    """What happened in each of n episodes that ran to their last step, all (n,)."""

    farthest: NDArray[np.float64]  #: of the landmarks from their nearest agents, at the last step
    finished: NDArray[np.bool_]  #: at some step every agent was within 0.2 of a landmark
    collisions: NDArray[np.int64]  #: colliding pair-steps
    collisions_before: NDArray[np.int64]  #: those up to the step at which the episode was finished
    returns: NDArray[np.float64]

    @property
    def covered(self) -> NDArray[np.bool_]:
        """(n,) True where every landmark had an agent within 0.1 at the last step."""
        return np.asarray(self.farthest < physics.COVERED)

    @property
    def touched(self) -> NDArray[np.bool_]:
        """(n,) True where every landmark had an agent within 0.2 at the last step: their discs overlap."""
        return np.asarray(self.farthest < physics.ARRIVED)


def main() -> None:
    """Print one line for each set of actors and length of episode."""
    arguments = _parser().parse_args()
    drawn = layout.sample(np.random.default_rng(arguments.seed), arguments.episodes)
    inputs = drawn[is_solvable(drawn, min(arguments.steps))]
    print(f"{len(drawn)} starts drawn with seed {arguments.seed}, {len(inputs)} of them solvable")
    for path in filter(None, (arguments.networks, arguments.compare)):
        print(f"\n{path}")
        print(HEADER)
        for steps in arguments.steps:
            print(f"{steps:5d} | {_row(run(actors_in(path), inputs, steps))}", flush=True)


def run(bank: MlpBank, inputs: NDArray[np.float64], steps: int) -> Episodes:
    """Run an episode of `steps` steps from each of `inputs` (n, 12)."""
    count = len(inputs)
    worlds, rows = physics.start(inputs), np.arange(count)
    observations = np.empty((count, physics.AGENTS, physics.OBSERVED))
    rewards, (colliding, covered, arrived) = np.empty(count), np.empty((3, count), np.int64)
    collisions, before, finished, returns = (np.zeros(count, kind) for kind in (int, int, bool, float))
    for _ in range(steps):
        physics.observe(worlds, rows, observations)
        physics.advance(worlds, rows, act(bank, observations), False)
        physics.judge(worlds, rows, rewards, colliding, covered, arrived)
        collisions += colliding
        before += np.where(finished, 0, colliding)
        finished |= arrived == physics.AGENTS
        returns += rewards
    return Episodes(_farthest(worlds), finished, collisions, before, returns)


def _farthest(worlds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the largest distance of a landmark from its nearest agent, in worlds (n, 18)."""
    agents, landmarks = (
        worlds[:, part].reshape(-1, physics.AGENTS, 2) for part in (physics.POSITIONS, physics.LANDMARKS)
    )
    distances = np.linalg.norm(agents[:, :, None] - landmarks[:, None], axis=3)
    return np.asarray(distances.min(axis=1).max(axis=1))


def _row(episodes: Episodes) -> str:
    excused = (episodes.collisions_before > LIMIT) & ~episodes.finished
    return " | ".join(
        [
            _rate(episodes.covered, 100, 1, " %"),
            _rate(episodes.touched, 100, 1, " %"),
            _rate(episodes.finished, 100, 1, " %"),
            _mean(episodes.collisions),
            _mean(episodes.returns),
            _rate(excused, 1000, 2),
            _rate(episodes.collisions_before > LIMIT, 1000, 2),
            _rate(episodes.collisions > LIMIT, 1000, 2),
        ]
    )


def _rate(flags: NDArray[np.bool_], scale: int, digits: int, unit: str = "") -> str:
    """A share with its 95 % interval."""
    low, high = binomtest(int(flags.sum()), len(flags)).proportion_ci(method="wilson")
    return f"{scale * flags.mean():.{digits}f}{unit} ({scale * low:.{digits}f} to {scale * high:.{digits}f})"


def _mean(values: NDArray[np.float64] | NDArray[np.int64]) -> str:
    """A mean with its 95 % interval."""
    half = 1.96 * float(values.std()) / np.sqrt(len(values))
    return f"{values.mean():.3f} ± {half:.3f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=Path, required=True, help="a networks.npz")
    parser.add_argument("--compare", type=Path, help="other actors to run through the same episodes")
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--steps", type=int, nargs="+", default=[25, 100], metavar="N", help="of an episode")
    parser.add_argument("--seed", type=int, default=4242)
    return parser


if __name__ == "__main__":
    main()
