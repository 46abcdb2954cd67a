"""Fine-tunes networks: changes the decisions that labels ask for, and holds on to all others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.policies.torch import one_thread
from policyfuzz.repairing.networks import Decision, Examples, Trainable


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How to fine-tune."""

    rate: float = 3e-4  #: of learning, at first
    slower: float = 0.7  #: the rate is multiplied by this after each look
    batch: int = 2048  #: examples of each kind per step
    steps: int = 100  #: between two looks at the candidate
    looks: int = 8  #: at most
    patience: int = 3  #: looks without a better candidate before it ends, once there is one
    changed: float = 1.0  #: weight of labels
    kept: float = 2.0  #: weight of decisions that must stay
    anchored: float = 4.0  #: weight of outputs that must stay
    margin: float = 0.5  #: by which a decision should win, in units of the usual gap

    @classmethod
    def usual(cls, decision: Decision) -> "TrainingSettings":
        """For networks that decide like this.

        A choice changes when its score overtakes another, and then asks for nothing more. A number has to be
        moved all the way, and labels of numbers are fewer, so they weigh more and take longer. Moving them
        costs return in episodes that never were in danger unless outputs there are held as firmly.
        """
        if decision is Decision.NUMBERS:
            return cls(rate=5e-4, slower=0.85, looks=12, changed=4.0, kept=8.0, anchored=16.0)
        return cls()


@dataclass(frozen=True, slots=True)
class Corpus:
    """All that networks are trained on."""

    changes: Examples
    newest: int  #: examples at the end of `changes` that the last round has added
    kept: Examples
    anchors: Examples
    anchor_outputs: NDArray[np.float32]  #: (m, k) of the old networks


def outputs_of(networks: Trainable, examples: Examples, size: int = 65536) -> NDArray[np.float32]:
    """(m, k) what `networks` give for `examples`."""
    torch = extras.load("torch", "repair")
    parts = []
    with one_thread(torch), torch.no_grad():
        for start in range(0, len(examples.inputs), size):
            rows = slice(start, start + size)
            parts.append(
                networks.outputs(
                    torch.from_numpy(np.ascontiguousarray(examples.inputs[rows])).float(),
                    torch.from_numpy(examples.which[rows]),
                ).numpy()
            )
    return np.concatenate(parts)


def train(
    networks: Trainable, corpus: Corpus, settings: TrainingSettings, rng: np.random.Generator
) -> Iterator[int]:
    """Change `networks` in place; yields the number of steps taken each time a look is due."""
    torch = extras.load("torch", "repair")
    loss = _Loss(networks, corpus, settings)
    adam = _Adam(networks.parameters())
    for look in range(settings.looks):
        with one_thread(torch):
            for _ in range(settings.steps):
                adam.step(loss(rng), settings.rate * settings.slower**look)
        yield (look + 1) * settings.steps


def weights_of(networks: Trainable) -> list[Any]:
    """Copies of all tensors that `train` changes."""
    return [one.detach().clone() for one in networks.parameters()]


def blend(networks: Trainable, before: list[Any], shares: Sequence[float]) -> Iterator[float]:
    """Move the weights of `networks` to `shares` of the way from `before` to where they are; yield each.

    Interpolated weights often keep what fine-tuning has gained and lose less of what was there (Wortsman et
    al., 2022).
    """
    torch = extras.load("torch", "repair")
    after = weights_of(networks)
    for share in shares:
        with torch.no_grad():
            for one, old, new in zip(networks.parameters(), before, after, strict=True):
                one.copy_(old + share * (new - old))
        yield share


class _Loss:
    def __init__(self, networks: Trainable, corpus: Corpus, settings: TrainingSettings) -> None:
        self._torch = extras.load("torch", "repair")
        self._networks, self._settings = networks, settings
        self._changes, self._kept, self._anchors = (
            _Tensors(self._torch, one) for one in (corpus.changes, corpus.kept, corpus.anchors)
        )
        old = corpus.anchor_outputs
        self._old = self._torch.from_numpy(old)
        self._scale = float(old.std()) or 1.0
        self._margin = settings.margin * self._usual_gap(old)
        self._newest = corpus.newest

    def _usual_gap(self, old: NDArray[np.float32]) -> float:
        if self._networks.decision is Decision.NUMBERS or old.shape[1] < 2:
            return 0.0
        ordered = np.sort(old if self._networks.decision is Decision.LOWEST else -old, axis=1)
        return float(np.median(ordered[:, 1] - ordered[:, 0])) / self._scale

    def __call__(self, rng: np.random.Generator) -> Any:
        settings, torch = self._settings, self._torch
        total = torch.zeros(())
        for some, weight in ((self._changes, settings.changed), (self._kept, settings.kept)):
            if some.count:
                rows = rng.integers(some.count, size=settings.batch)
                if some is self._changes and self._newest:
                    # later rounds have fewer labels, which would drown in those of the first
                    rows[::2] = some.count - 1 - rng.integers(self._newest, size=len(rows[::2]))
                rows = torch.from_numpy(rows)
                total = total + weight * self._decided(some, rows)
        rows = torch.from_numpy(rng.integers(self._anchors.count, size=settings.batch))
        outputs = self._networks.outputs(self._anchors.inputs[rows], self._anchors.which[rows])
        return total + settings.anchored * (((outputs - self._old[rows]) / self._scale) ** 2).mean()

    def _decided(self, some: "_Tensors", rows: Any) -> Any:
        """How far the decisions in `rows` are from what they should be."""
        torch = self._torch
        outputs = self._networks.outputs(some.inputs[rows], some.which[rows]) / self._scale
        wanted = some.actions[rows]
        if self._networks.decision is Decision.NUMBERS:
            return ((outputs - wanted / self._scale) ** 2).mean()
        if self._networks.decision is Decision.HIGHEST:
            outputs = -outputs
        place = wanted.long()
        chosen = outputs.gather(1, place)
        others = outputs.scatter(1, place, float("inf")).min(dim=1, keepdim=True).values
        return torch.relu(self._margin + chosen - others).mean()


class _Adam:
    """The usual optimiser with its usual constants; that of torch imports its compiler, for seconds."""

    def __init__(self, parameters: list[Any]) -> None:
        self._torch = extras.load("torch", "repair")
        self._parameters = parameters
        self._means = [self._torch.zeros_like(one) for one in parameters]
        self._squares = [self._torch.zeros_like(one) for one in parameters]
        self._steps = 0

    def step(self, loss: Any, rate: float) -> None:
        """Change all parameters so that `loss` falls."""
        torch = self._torch
        gradients = torch.autograd.grad(loss, self._parameters, allow_unused=True)
        self._steps += 1
        with torch.no_grad():
            for one, mean, square, gradient in zip(
                self._parameters, self._means, self._squares, gradients, strict=True
            ):
                if gradient is None:
                    continue  # a network that acts in none of the examples
                mean.mul_(0.9).add_(gradient, alpha=0.1)
                square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                spread = (square / (1 - 0.999**self._steps)).sqrt_().add_(1e-8)
                one.addcdiv_(mean, spread, value=-rate / (1 - 0.9**self._steps))


class _Tensors:
    def __init__(self, torch: Any, examples: Examples) -> None:
        self.count = len(examples.inputs)
        self.inputs = torch.from_numpy(np.ascontiguousarray(examples.inputs)).float()
        self.which = torch.from_numpy(examples.which)
        self.actions = torch.from_numpy(examples.actions).float()
