"""Make a student fall less by trial and error (PPO): `python -m bipedal.improve`.

Up to half of the walks of every round go over terrains on which the student has fallen before.
What is validated and exported is a running mean of the weights.
"""

import argparse
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bipedal.hard_terrains import HardTerrains
from bipedal.learner import Experience, Learner, learn
from bipedal.student import claim, export, load, save, to_bank
from bipedal.walks import FULL, Cases, acting, score, walk
from policyfuzz.targets.bipedal.simulator import WalkerSimulator

#: Key of the generator of the validation terrains, where rounds have their number.
VALIDATION = 1_000_000
#: Rounds in which only the critic learns.
CRITIC_ROUNDS = 6


@dataclass(slots=True)
class Progress:
    """How far it has come."""

    learner: Learner
    hard: HardTerrains = field(default_factory=HardTerrains)
    rounds: int = 0  #: that are done
    best: float = -np.inf  #: mean return over the validation terrains

    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on."""
        return {
            "round": self.rounds,
            "best": self.best,
            "hard": self.hard.state(),
            "learner": self.learner.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.rounds, self.best = state["round"], state["best"]
        self.hard.restore(state["hard"])
        self.learner.restore(state["learner"])


def main() -> None:
    """Run all rounds, from the last checkpoint on."""
    improve(parser().parse_args())


def improve(arguments: argparse.Namespace) -> None:
    """Run all rounds that are not done yet; exports the best validated student on the way."""
    torch.set_num_threads(1)
    names = ("rounds", "walkers", "horizon", "learning_rate", "spread", "validation", "every", "seed")
    claim(arguments.work, {name: getattr(arguments, name) for name in names})
    learner = Learner.of(load(arguments.student), arguments.spread, arguments.seed)
    progress = Progress(learner)
    checkpoint = arguments.work / "improve.pt"
    if checkpoint.exists():
        progress.restore(load(checkpoint))
    simulator = WalkerSimulator()
    while progress.rounds < arguments.rounds:
        run_round(progress, simulator, arguments)
        if progress.rounds % arguments.every == 0 or progress.rounds == arguments.rounds:
            validate(progress, simulator, arguments)
        save(checkpoint, progress.state())


def run_round(progress: Progress, simulator: WalkerSimulator, arguments: argparse.Namespace) -> None:
    """Walk, learn, and print a line."""
    started = time.monotonic()
    # a round follows from seed and number alone, so that an interrupted run continues as it would have
    rng = np.random.default_rng([arguments.seed, progress.rounds])
    learner = progress.learner
    cases, limits = progress.hard.draw(rng, arguments.walkers, arguments.horizon)
    walks = walk(simulator, learner.trying(rng), cases, arguments.horizon, limits)
    walked = time.monotonic()
    progress.hard.remember(cases, walks)
    rate = arguments.learning_rate * (1 - 0.9 * progress.rounds / arguments.rounds)
    line = learn(learner, Experience.of(learner, walks), rate, progress.rounds >= CRITIC_ROUNDS, rng)
    learner.average()
    progress.rounds += 1
    fresh = slice(arguments.walkers - arguments.walkers // 2, None)
    print(
        f"round {progress.rounds}/{arguments.rounds}  falls {walks.has_fallen.mean():.3f}, on new terrains "
        f"{walks.has_fallen[fresh].mean():.3f}  return there {walks.returns[fresh].mean():.1f}  {line}  "
        f"hard {len(progress.hard)}  steps {walks.lengths.sum()}  {walked - started:.1f} + "
        f"{time.monotonic() - walked:.1f} s",
        file=sys.stderr,
        flush=True,
    )


def validate(progress: Progress, simulator: WalkerSimulator, arguments: argparse.Namespace) -> None:
    """Walk the validation terrains; keep this student, and export it if it is the best so far."""
    student, scaling = progress.learner.mean_actor, progress.learner.scaling
    cases = Cases.random(np.random.default_rng([arguments.seed, VALIDATION]), arguments.validation)
    scores = score(simulator, acting(to_bank(student, scaling)), cases, FULL)
    merit = float(scores.returns.mean())
    print(
        f"validation {progress.rounds}: falls {scores.has_fallen.mean():.4f}  return {merit:.1f}  "
        f"median {np.median(scores.returns):.1f}  length {scores.lengths.mean():.0f}",
        file=sys.stderr,
        flush=True,
    )
    export(arguments.work / f"student-{progress.rounds:04d}.npz", student, scaling)
    if merit > progress.best:
        progress.best = merit
        export(arguments.out, student, scaling)


def parser() -> argparse.ArgumentParser:
    """Options of the script."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--student", type=Path, required=True, help="checkpoint of bipedal.imitate")
    options.add_argument("--work", type=Path, required=True, help="folder for checkpoints")
    options.add_argument("--out", type=Path, required=True, help="the networks.npz to write")
    options.add_argument("--rounds", type=int, default=90)
    options.add_argument("--walkers", type=int, default=96, help="in a round")
    options.add_argument("--horizon", type=int, default=1400, help="steps of a walk")
    options.add_argument("--learning-rate", type=float, default=3e-4)
    options.add_argument("--spread", type=float, default=0.2, help="of the first noise on the motors")
    options.add_argument("--every", type=int, default=15, help="rounds between validations")
    options.add_argument("--validation", type=int, default=192, help="terrains of a validation")
    options.add_argument("--seed", type=int, default=1)
    return options


if __name__ == "__main__":
    main()
