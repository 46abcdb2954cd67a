"""Distil a student from a teacher that walks (DAgger): `python -m bipedal.imitate`.

The student walks, the teacher says at every step what it would have done, and the student is fitted to all
that was said so far. In the first round the teacher walks itself.
"""

import argparse
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bipedal.student import MOTORS, Scaling, claim, export, load, make_network, save, to_bank
from bipedal.walks import TOGETHER, Cases, Floats, Walks, acting, walk
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.bipedal.networks import network_in
from policyfuzz.targets.bipedal.simulator import WalkerSimulator

LEARNING_RATE = 1e-3
BATCH = 2048


@dataclass(slots=True)
class Lessons:
    """All that the teacher has said."""

    observations: Floats = field(default_factory=lambda: np.empty((0, 24), np.float32))
    answers: Floats = field(default_factory=lambda: np.empty((0, MOTORS), np.float32))

    def add(self, observations: Floats, answers: Floats) -> None:
        """Remember more of it."""
        self.observations = np.concatenate([self.observations, observations])
        self.answers = np.concatenate([self.answers, answers])


@dataclass(slots=True)
class Imitation:
    """How far the imitation has come."""

    student: nn.Sequential
    lessons: Lessons = field(default_factory=Lessons)
    scaling: Scaling | None = None  #: None before the first round
    rounds: int = 0  #: that are done

    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on."""
        assert self.scaling is not None
        return {
            "round": self.rounds,
            "mean": self.scaling.mean,
            "spread": self.scaling.spread,
            "student": self.student.state_dict(),
            "observations": torch.from_numpy(self.lessons.observations),
            "answers": torch.from_numpy(self.lessons.answers),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.rounds, self.scaling = state["round"], Scaling(state["mean"], state["spread"])
        self.student.load_state_dict(state["student"])
        self.lessons = Lessons(state["observations"].numpy(), state["answers"].numpy())


def main() -> None:
    """Run all rounds, from the last checkpoint on, and export the student."""
    imitate(parser().parse_args())


def imitate(arguments: argparse.Namespace) -> None:
    """Run all rounds that are not done yet."""
    torch.set_num_threads(1)
    names = ("widths", "walkers", "horizon", "fits", "noise", "seed")
    claim(arguments.work, {name: getattr(arguments, name) for name in names})
    checkpoint = arguments.work / "imitate.pt"
    teacher, simulator = network_in(arguments.teacher), WalkerSimulator()
    imitation = Imitation(make_network(tuple(arguments.widths), MOTORS, arguments.seed))
    if checkpoint.exists():
        imitation.restore(load(checkpoint))
    while imitation.rounds < arguments.rounds:
        started = time.monotonic()
        # a round follows from seed and number alone, so that an interrupted run continues as it would have
        rng = np.random.default_rng([arguments.seed, imitation.rounds])
        guide = teacher if imitation.scaling is None else to_bank(imitation.student, imitation.scaling)
        cases = Cases.random(rng, arguments.walkers)
        walks = walk(simulator, acting(guide, rng, arguments.noise), cases, arguments.horizon)
        loss = take_lesson(imitation, teacher, walks, arguments.fits, rng)
        save(checkpoint, imitation.state())
        print(
            f"round {imitation.rounds}/{arguments.rounds}  lessons {len(imitation.lessons.answers)}  "
            f"loss {loss:.4f}  falls {walks.has_fallen.mean():.3f}  return {walks.returns.mean():.1f}  "
            f"{time.monotonic() - started:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    assert imitation.scaling is not None
    export(arguments.out, imitation.student, imitation.scaling)


def take_lesson(
    imitation: Imitation, teacher: MlpBank, walks: Walks, steps: int, rng: np.random.Generator
) -> float:
    """Ask the teacher about all that `walks` have seen, and fit the student; returns its loss."""
    seen = walks.observations[:, :-1][walks.counted]
    answers = teacher(seen, np.zeros(len(seen), np.int64)).astype(np.float32)
    imitation.lessons.add(seen, answers)
    imitation.scaling = imitation.scaling or Scaling.of(seen)
    imitation.rounds += 1
    return fit(imitation.student, imitation.scaling, imitation.lessons, steps, rng)


def fit(
    student: nn.Sequential, scaling: Scaling, lessons: Lessons, steps: int, rng: np.random.Generator
) -> float:
    """Adam on all lessons for `steps` batches; returns the mean loss of the last hundred."""
    inputs = scaling(torch.from_numpy(lessons.observations))
    targets = torch.from_numpy(lessons.answers)
    optimiser = torch.optim.Adam(student.parameters())
    losses = []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = LEARNING_RATE * (1 - 0.95 * step / steps)
        rows = torch.from_numpy(rng.integers(0, len(targets), BATCH))
        loss = (student(inputs[rows]).tanh() - targets[rows]).square().mean()
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimiser.step()
        losses.append(loss.item())
    return float(np.mean(losses[-100:]))


def parser() -> argparse.ArgumentParser:
    """Options of the script."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--teacher", type=Path, required=True, help="a .json or .npz policy")
    options.add_argument("--work", type=Path, required=True, help="folder for the checkpoint")
    options.add_argument("--out", type=Path, required=True, help="the .npz to write")
    options.add_argument("--rounds", type=int, default=12)
    options.add_argument("--walkers", type=int, default=TOGETHER, help="in a round")
    options.add_argument("--horizon", type=int, default=1000, help="steps of a walk")
    options.add_argument("--fits", type=int, default=3000, help="batches that are fitted in a round")
    options.add_argument("--noise", type=float, default=0.1, help="spread of the noise on the motors")
    options.add_argument("--widths", type=int, nargs="+", default=[64, 64], help="of the hidden layers")
    options.add_argument("--seed", type=int, default=1)
    return options


if __name__ == "__main__":
    main()
