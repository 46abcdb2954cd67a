"""What is fuzzed: data plus factories, so that every worker can build its own."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import UsageError, blamed_on
from policyfuzz.inputs import InputSpace
from policyfuzz.oracles import Oracle
from policyfuzz.policies.protocol import Policy
from policyfuzz.rollout import Executions, Observer, rollout
from policyfuzz.simulators.protocol import Simulator


@dataclass(frozen=True, slots=True)
class Target:
    """A policy in its environment, and what counts as a crash of it."""

    name: str  #: the string that rebuilds this target: built-in name with options, or module:function
    inputs: InputSpace
    simulator: Callable[[], Simulator]
    policy: Callable[[], Policy]
    oracle: Oracle
    horizon: int  #: steps of an episode at most (M in the paper)
    policy_name: str = "built in"  #: for readers
    policy_uri: str | None = None  #: loads the same policy from any folder; None for the target's own
    policy_sha256: str = ""  #: of the policy's content; a campaign is resumed only with the same one
    #: (n, d) -> (n,) True where a perfect policy would not crash; None where nobody can tell.
    solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None = None
    decay: float = 1.0  #: the return follows r <- decay · r + reward
    batch_size: int = 64  #: episodes per batch by default
    samples: int = 1000  #: random inputs before the first is changed by default; fewer if episodes are slow
    film_steps_per_second: int = 20  #: where the simulator renders
    #: Draws one replayed episode: target, input (d,), case seed, PNG file to write.
    draw: Callable[["Target", NDArray[np.float64], int, Path], None] | None = None

    def __post_init__(self) -> None:
        for what in ("horizon", "batch_size", "samples", "film_steps_per_second"):
            if getattr(self, what) < 1:
                raise UsageError(f"target {self.name} has {what} {getattr(self, what)}, expected 1 or more")


class Runner:
    """A target's simulator and policy, built once and ready to run episodes."""

    def __init__(self, target: Target) -> None:
        self.target = target
        with blamed_on(f"target {target.name}"):
            self.simulator = target.simulator()
            self.policy = target.policy()

    def __call__(
        self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], observer: Observer | None = None
    ) -> Executions:
        """Run one episode for each row of `inputs` (n, d) with case seeds (n,)."""
        target = self.target
        with blamed_on(f"target {target.name}"):
            return rollout(
                self.simulator,
                self.policy,
                target.oracle,
                inputs,
                seeds,
                horizon=target.horizon,
                decay=target.decay,
                observer=observer,
            )
