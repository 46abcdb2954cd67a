"""What is trained, and with which settings of PPO."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Phase:
    """Some rounds in a row."""

    rounds: int
    rates: tuple[float, float]  #: learning rate of the first round and of the last, linear between
    entropy: float = 0.0  #: what a unit of entropy is worth

    def rate(self, number: int) -> float:
        """The learning rate of round `number` of the phase, from zero."""
        first, last = self.rates
        return first + (last - first) * number / max(1, self.rounds - 1)


@dataclass(frozen=True, slots=True)
class Task:
    """An environment and how its policy is trained."""

    environment_id: str
    environments: int  #: stepped together
    steps: int  #: of each environment between two updates
    updates: int  #: of one round; episodes start afresh with every round
    phases: tuple[Phase, ...]
    width: int = 64  #: of the two hidden layers, tanh
    settings: dict[str, Any] = field(default_factory=dict)  #: others of PPO

    @property
    def target(self) -> str:
        """What the fuzzer calls it: starts are drawn from its wide bounds."""
        return f"gym:{self.environment_id}:bounds=wide"

    @property
    def rounds(self) -> int:
        """Of all phases."""
        return sum(phase.rounds for phase in self.phases)

    def schedule(self, number: int) -> dict[str, Any]:
        """The settings of PPO that change, in round `number` from zero."""
        for phase in self.phases:
            if number < phase.rounds:
                return {"learning_rate": phase.rate(number), "ent_coef": phase.entropy}
            number -= phase.rounds
        raise IndexError(f"there are {self.rounds} rounds only")


TASKS = {
    "cartpole": Task(
        "CartPole-v1",
        environments=16,
        steps=128,
        updates=8,
        phases=(Phase(40, (1e-3, 1e-4)),),
        settings={"batch_size": 256, "n_epochs": 10, "gamma": 0.99, "gae_lambda": 0.95},
    ),
    "lunarlander": Task(
        "LunarLander-v3",
        environments=16,
        steps=1024,
        updates=3,
        # at the end of the first phase, drawn actions make an episode three times as long as the best ones do
        phases=(Phase(30, (5e-4, 1e-4), entropy=0.01), Phase(30, (2e-4, 2e-5))),
        settings={"batch_size": 256, "n_epochs": 6, "gamma": 0.999, "gae_lambda": 0.98},
    ),
}
