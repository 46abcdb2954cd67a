"""Fit the 45 networks to the tables: `python -m acasxu.fit_networks`.

The networks are bred in stages, since they have much in common: one network for bucket 2 first, then one for
each bucket, then one for each previous advisory and bucket, at last more of those that the simulation uses.
Each stage starts from the networks of the stage before, and trains all of its networks side by side.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from acasxu.dataset import Dataset, cached_dataset
from acasxu.tables import TableFolder

SIZES = (5, 50, 50, 50, 50, 50, 50, 5)
BUCKETS = 9
ADVISORIES = 5
#: (previous advisory, bucket) in the order of the rows of the file.
ALL_NETWORKS = tuple((before, bucket) for before in range(ADVISORIES) for bucket in range(BUCKETS))
#: Number of the bucket that the simulation uses, from 0.
FLOWN_BUCKET = 1
#: States at the end of the training set that are kept for the log.
HELD_OUT = 20_000


@dataclass(frozen=True, slots=True)
class Stage:
    """A set of networks that train together."""

    name: str
    networks: tuple[tuple[int, int], ...]  #: (previous advisory, bucket) of each
    steps: int
    batch: int
    learning_rate: float


@dataclass(frozen=True, slots=True)
class Loss:
    """What makes a bad score: mostly that it changes the advisory."""

    half_score: float = 0.02  #: an advisory that is this much worse than the best scores 0.5
    misleading: float = 5.0  #: weight of errors that push the best advisory up or another one down
    temperature: float = 0.05  #: how far scores may be apart and still count as a choice of both
    regret: float = 1.0  #: weight of the expected score of what the network would choose

    def targets(self, outlooks: Tensor, switching: Tensor) -> Tensor:
        """(k, n, 5) scores in [0, 1), 0 for the best advisory, from outlooks (k, n, 5) and costs (k, 5)."""
        total = outlooks + switching[:, None, :]
        worse = total - total.amin(dim=2, keepdim=True)
        return worse / (worse + self.half_score)

    def __call__(self, scores: Tensor, targets: Tensor) -> Tensor:
        """(k,) mean loss of each network's scores (k, n, 5)."""
        error = scores - targets
        is_best = targets == 0
        weight = torch.where((error > 0) == is_best, self.misleading, 1.0)
        choice = torch.softmax(-scores / self.temperature, dim=2)
        return (weight * error.square()).mean(dim=(1, 2)) + self.regret * (choice * targets).sum(2).mean(1)


class Networks:
    """k networks that are trained side by side; weights (k, in, out) and biases (k, 1, out)."""

    def __init__(self, weights: list[Tensor], biases: list[Tensor]) -> None:
        self.weights = [weight.requires_grad_() for weight in weights]
        self.biases = [bias.requires_grad_() for bias in biases]

    @classmethod
    def random(cls, generator: torch.Generator) -> "Networks":
        """One network, its weights scaled for rectifiers and its first kinks spread over the inputs."""
        weights, biases = [], []
        for width, next_width in pairwise(SIZES):
            weights.append(torch.randn(1, width, next_width, generator=generator) * (2 / width) ** 0.5)
            biases.append(torch.zeros(1, 1, next_width))
        biases[0] = torch.rand(1, 1, SIZES[1], generator=generator) * 4 - 2
        return cls(weights, biases)

    def copies(self, parents: list[int]) -> "Networks":
        """New networks that start as copies of networks `parents` of these."""
        return Networks(
            [weight.detach()[parents].clone() for weight in self.weights],
            [bias.detach()[parents].clone() for bias in self.biases],
        )

    def parameters(self) -> list[Tensor]:
        """What the optimiser moves."""
        return [*self.weights, *self.biases]

    def __call__(self, inputs: Tensor) -> Tensor:
        """(k, n, 5) scores of all networks for the inputs (n, 5)."""
        hidden = inputs.expand(len(self.weights[0]), *inputs.shape)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.baddbmm(bias, hidden, weight)
            if layer < len(self.weights) - 1:
                hidden = hidden.relu()
        return hidden


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The training set as tensors, with inputs brought to zero mean and unit spread."""

    inputs: Tensor  #: (n, 5)
    outlooks: Tensor  #: (n, 5, 9)
    switching: Tensor  #: (5, 5)
    mean: Tensor
    spread: Tensor

    @classmethod
    def of(cls, dataset: Dataset, switching: Tensor) -> "TrainingData":
        """Standardise `dataset`; the networks are exported for the inputs as they were."""
        observations = torch.from_numpy(dataset.observations)
        mean, spread = observations.mean(dim=0), observations.std(dim=0)
        outlooks = torch.from_numpy(dataset.outlooks)
        return cls((observations - mean) / spread, outlooks, switching, mean, spread)

    def batch(self, rows: Tensor, stage: Stage, loss: Loss) -> tuple[Tensor, Tensor]:
        """Inputs (n, 5) of these rows, and the targets (k, n, 5) of the stage's networks."""
        before = [advisory for advisory, _ in stage.networks]
        buckets = [bucket for _, bucket in stage.networks]
        outlooks = self.outlooks[rows].permute(2, 0, 1)[buckets]
        return self.inputs[rows], loss.targets(outlooks, self.switching[before])


def main() -> None:
    """Run all stages, from the last checkpoint on, and export the networks."""
    arguments = _parser().parse_args()
    torch.set_num_threads(arguments.threads)
    _claim(arguments)
    folder = TableFolder(arguments.tables)
    switching = torch.from_numpy(folder.problem().costs.switching())
    dataset = cached_dataset(
        arguments.work / "dataset.npz", folder, arguments.states_per_pair, arguments.seed
    )
    data = TrainingData.of(dataset, switching)
    networks = Networks.random(torch.Generator().manual_seed(arguments.seed))
    members: tuple[tuple[int, int], ...] = ((0, FLOWN_BUCKET),)
    bank: dict[tuple[int, int], Networks] = {}
    for number, stage in enumerate(_stages(arguments.steps, arguments.learning_rate)):
        networks = networks.copies([_parent(network, members) for network in stage.networks])
        members = stage.networks
        run_stage(networks, stage, data, arguments.work / f"{number}-{stage.name}.pt", arguments)
        bank |= {network: networks.copies([i]) for i, network in enumerate(members)}
        export(arguments.out, bank, data)


def _claim(arguments: argparse.Namespace) -> None:
    """Make the work folder, or check that the checkpoints in it belong to the same options."""
    options = {
        name: getattr(arguments, name) for name in ("steps", "states_per_pair", "learning_rate", "seed")
    }
    arguments.work.mkdir(parents=True, exist_ok=True)
    note = arguments.work / "options.json"
    if not note.exists():
        note.write_text(json.dumps(options) + "\n")
    elif json.loads(note.read_text()) != options:
        raise SystemExit(f"{arguments.work} holds a fit with other options: give another folder, or empty it")


def run_stage(
    networks: Networks, stage: Stage, data: TrainingData, checkpoint: Path, arguments: argparse.Namespace
) -> None:
    """Train `networks` in place; continue from `checkpoint` if there is one."""
    loss = Loss()
    optimiser = torch.optim.Adam(networks.parameters(), lr=stage.learning_rate)
    first = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        first = saved["step"]
        optimiser.load_state_dict(saved["optimiser"])
        with torch.no_grad():
            for parameter, value in zip(networks.parameters(), saved["parameters"], strict=True):
                parameter.copy_(value)
    started = time.monotonic()
    train_rows = len(data.inputs) - HELD_OUT
    for step in range(first, stage.steps):
        # Batches follow from seed and step alone, so that an interrupted run continues as it would have.
        rng = np.random.default_rng([arguments.seed, len(stage.networks), step])
        rows = torch.from_numpy(rng.integers(0, train_rows, stage.batch))
        for group in optimiser.param_groups:
            group["lr"] = _learning_rate(stage, step)
        inputs, targets = data.batch(rows, stage, loss)
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss(networks(inputs), targets).sum())
        optimiser.step()
        if (step + 1) % arguments.every == 0 or step + 1 == stage.steps:
            _save(checkpoint, networks, optimiser, step + 1)
            _log(networks, stage, data, loss, step + 1, time.monotonic() - started)


def export(path: Path, bank: dict[tuple[int, int], Networks], data: TrainingData) -> None:
    """Write all 45 networks; those that no stage has reached are copies of their next of kin."""
    members = tuple(bank)
    parents = [members[_parent(network, members)] for network in ALL_NETWORKS]
    rows = [_flat(bank[parent], data) for parent in parents]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(partial, parameters=np.stack(rows), sizes=np.array(SIZES, np.int64))
    partial.replace(path)


def _flat(network: Networks, data: TrainingData) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """(p,) layers of one network, with the standardisation of its inputs worked into the first."""
    weights = [weight.detach()[0].double() for weight in network.weights]
    biases = [bias.detach()[0, 0].double() for bias in network.biases]
    weights[0] = weights[0] / data.spread.double()[:, None]
    biases[0] = biases[0] - data.mean.double() @ weights[0]
    parts = [part.flatten() for layer in zip(weights, biases, strict=True) for part in layer]
    return torch.cat(parts).float().numpy()


def _parent(network: tuple[int, int], members: tuple[tuple[int, int], ...]) -> int:
    """Which of `members` is most like `network`: same bucket before same advisory before the next bucket."""
    return min(
        range(len(members)),
        key=lambda i: (abs(members[i][1] - network[1]), members[i][0] != network[0], members[i][0]),
    )


def _stages(steps: list[int], learning_rate: float) -> list[Stage]:
    buckets = tuple((0, bucket) for bucket in range(BUCKETS))
    flown = tuple((before, FLOWN_BUCKET) for before in range(ADVISORIES))
    return [
        Stage("first", ((0, FLOWN_BUCKET),), steps[0], 2048, learning_rate),
        Stage("buckets", buckets, steps[1], 2048, learning_rate),
        Stage("all", ALL_NETWORKS, steps[2], 1024, learning_rate / 2),
        Stage("flown", flown, steps[3], 2048, learning_rate / 2),
    ]


def _learning_rate(stage: Stage, step: int) -> float:
    """A short warm-up, then half a cosine down to a hundredth."""
    warm_up = min(1.0, (step + 1) / 200)
    cosine = 0.5 * (1 + np.cos(np.pi * step / stage.steps))
    return float(stage.learning_rate * warm_up * (0.01 + 0.99 * cosine))


def _save(path: Path, networks: Networks, optimiser: torch.optim.Optimizer, step: int) -> None:
    partial = path.with_suffix(".partial")
    saved = {"step": step, "optimiser": optimiser.state_dict(), "parameters": networks.parameters()}
    torch.save(saved, partial)
    partial.replace(path)


def _log(networks: Networks, stage: Stage, data: TrainingData, loss: Loss, step: int, seconds: float) -> None:
    """One line: loss, agreement with the tables, and score lost where they disagree, on held-out states."""
    with torch.no_grad():
        losses, agreement, lost = [], [], []
        for start in range(len(data.inputs) - HELD_OUT, len(data.inputs), 2000):
            inputs, targets = data.batch(torch.arange(start, start + 2000), stage, loss)
            scores = networks(inputs)
            chosen = targets.gather(2, scores.argmin(2, keepdim=True))[..., 0]
            losses.append(loss(scores, targets))
            agreement.append((chosen == 0).float().mean(1))
            lost.append(chosen.mean(1))
        line = "  ".join(
            f"{name} {torch.stack(values).mean():.4f}"
            for name, values in (("loss", losses), ("agreement", agreement), ("lost", lost))
        )
    print(f"{stage.name} {step}/{stage.steps}  {line}  {seconds:.0f} s", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, required=True, help="folder that solve_tables wrote")
    parser.add_argument("--work", type=Path, required=True, help="folder for training set and checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="the networks.npz to write")
    parser.add_argument(
        "--steps",
        type=int,
        nargs=4,
        default=[50_000, 8_000, 4_500, 20_000],
        metavar="N",
        help="of each stage",
    )
    parser.add_argument("--states-per-pair", type=int, default=16_000)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--every", type=int, default=1000, help="steps between checkpoints")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    main()
