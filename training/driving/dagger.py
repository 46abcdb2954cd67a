"""Clone MetaDrive's expert: `python -m driving.dagger`.

DAgger: in every round a mixture of teacher and student drives, the teacher says what it would have done in
each state that was seen, and the student is fitted to everything said so far. What a round gives depends on
its number, the seed and the student before. Finished rounds are kept in the work folder; a run that was
interrupted goes on after the last of them.
"""

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from driving.episodes import Driver, draw_inputs, drive
from policyfuzz.policies.mlp import MlpBank, write_npz
from policyfuzz.targets.driving.networks import ACTION_SIZE, OBSERVATION_SIZE, DrivingPolicy, expert
from policyfuzz.targets.driving.simulator import DrivingSimulator

HIDDEN = 128
BATCH = 512
#: Share of decisions that the teacher takes in the second round, squared in the third, and so on.
TEACHER_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Lessons:
    """What the teacher said."""

    observations: NDArray[np.float32]  #: (n, 275)
    actions: NDArray[np.float32]  #: (n, 2) of the teacher, between -1 and 1


def main() -> None:
    """Run all rounds and write the last student."""
    arguments = _parser().parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.work.mkdir(parents=True, exist_ok=True)
    student = None
    for number in range(arguments.rounds):
        is_last = number == arguments.rounds - 1
        steps = arguments.last_steps if is_last else arguments.steps
        student = run_round(arguments, number, student, steps)
    assert student is not None
    write_npz(arguments.out, to_bank(student))


def run_round(
    arguments: argparse.Namespace, number: int, student: torch.nn.Sequential | None, steps: int
) -> torch.nn.Sequential:
    """The student of round `number`: from the work folder if it is there, else made and kept there."""
    kept = arguments.work / f"student_{number:02d}.pt"
    if not kept.exists():
        started = time.perf_counter()
        collect_once(arguments, number, student)
        lessons = load_lessons([arguments.work / f"lessons_{one:02d}.npz" for one in range(number + 1)])
        fitted = fit(lessons, steps, arguments.learning_rate, [arguments.seed, number])
        _save(kept, fitted)
        _say(f"round {number}: {len(lessons.actions)} lessons, {time.perf_counter() - started:.0f} s")
    network = make_student([arguments.seed, number])
    network.load_state_dict(torch.load(kept, weights_only=True))
    return network


def collect_once(arguments: argparse.Namespace, number: int, student: torch.nn.Sequential | None) -> None:
    """Drive the episodes of round `number` and keep the lessons, unless that was done before."""
    kept = arguments.work / f"lessons_{number:02d}.npz"
    if kept.exists():
        return
    rng = np.random.default_rng([arguments.seed, number])
    teacher = _driver(expert())
    driver = teacher if student is None else mixture(teacher, _driver(to_bank(student)), number, rng)
    simulator, outcomes, seen = DrivingSimulator(), Counter[str](), []
    for row in draw_inputs(rng, arguments.episodes):
        episode = drive(simulator, row, driver, arguments.horizon)
        outcomes[episode.outcome] += 1
        seen.append(episode.observations)
    observations = np.concatenate(seen)
    actions = np.clip([teacher(one) for one in observations], -1, 1).astype(np.float32)
    partial = kept.with_suffix(".partial.npz")
    np.savez(partial, observations=observations, actions=actions)
    partial.replace(kept)
    _say(f"round {number}: driven {dict(outcomes)}")


def mixture(teacher: Driver, student: Driver, number: int, rng: np.random.Generator) -> Driver:
    """Lets the teacher drive with a probability that halves from round to round."""
    share = TEACHER_SHARE**number
    return lambda observation: (teacher if rng.random() < share else student)(observation)


def fit(lessons: Lessons, steps: int, learning_rate: float, seed: list[int]) -> torch.nn.Sequential:
    """A student that was fitted to `lessons` from scratch: Adam, squared error, falling learning rate."""
    observations, actions = torch.from_numpy(lessons.observations), torch.from_numpy(lessons.actions)
    network = make_student(seed)
    optimiser = torch.optim.Adam(network.parameters(), learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    generator = torch.Generator().manual_seed(_number(seed) + 1)
    for _ in range(steps):
        rows = torch.randint(len(actions), (BATCH,), generator=generator)
        loss = (network(observations[rows]) - actions[rows]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return network


def make_student(seed: list[int]) -> torch.nn.Sequential:
    """A student that knows nothing yet."""
    torch.manual_seed(_number(seed))
    return torch.nn.Sequential(
        torch.nn.Linear(OBSERVATION_SIZE, HIDDEN),
        torch.nn.Tanh(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.Tanh(),
        torch.nn.Linear(HIDDEN, ACTION_SIZE),
        torch.nn.Tanh(),
    )


def to_bank(network: torch.nn.Sequential) -> MlpBank:
    """The network as the target runs it."""
    layers = [
        (layer.weight.detach().numpy().T, layer.bias.detach().numpy())
        for layer in network
        if isinstance(layer, torch.nn.Linear)
    ]
    return MlpBank.from_layers([layers], hidden="tanh", output="tanh")


def load_lessons(files: list[Path]) -> Lessons:
    """All lessons in `files`."""
    archives = [np.load(file) for file in files]
    return Lessons(*(np.concatenate([one[key] for one in archives]) for key in ("observations", "actions")))


def _driver(bank: MlpBank) -> Driver:
    policy = DrivingPolicy(bank)
    return lambda observation: policy.act(observation[None], np.zeros(1, np.int64))[0]


def _number(seed: list[int]) -> int:
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def _save(path: Path, network: torch.nn.Sequential) -> None:
    partial = path.with_suffix(".partial")
    torch.save(network.state_dict(), partial)
    partial.replace(path)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for lessons and students")
    parser.add_argument("--out", type=Path, required=True, help="the networks.npz to write")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=50, help="driven in each round")
    parser.add_argument("--horizon", type=int, default=200)
    parser.add_argument("--steps", type=int, default=4000, help="of the fit in each round")
    parser.add_argument("--last-steps", type=int, default=40_000, help="of the fit in the last round")
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    main()
