"""A world with a known bug: a walker must reach a gap, and turns away from gaps in one region."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Target
from policyfuzz.policies.mlp import MlpBank, read_npz, write_npz
from policyfuzz.repairing.files import BankNetworks, one_network
from policyfuzz.repairing.networks import Decision, PolicyFile

STEPS, STRIDE, WIDTH = 10, 0.1, 0.35
#: Gaps in here are run away from.
BUG = (0.52, 0.68)


class Walk:
    """n walkers, each with its gap; a walker that does not stand in its gap after the last step crashes."""

    signals = ("clear",)
    capacity = None

    def reset(self, inputs, seeds):
        self._gap, self._place = inputs[:, 0].copy(), np.zeros(len(inputs))
        self._step = 0
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self._step += 1
        self._place[rows] += STRIDE * (actions - 1.0)
        return self._frame(rows)

    def _frame(self, rows):
        place, gap = self._place[rows], self._gap[rows]
        is_over = self._step >= STEPS
        clear = WIDTH - np.abs(place - gap) if is_over else np.ones(len(rows))
        seen = np.column_stack([place, gap])
        return Frame(seen, seen, clear[:, None], -np.abs(place - gap), np.full(len(rows), is_over))


class WalkPolicy:
    """Steps left, stays, or steps right: the highest score wins."""

    def __init__(self, bank: MlpBank) -> None:
        self._bank = bank

    def begin(self, count: int) -> None: ...

    def act(self, observations: Any, rows: Any) -> Any:
        return self._bank(observations, np.zeros(len(rows), np.int64)).argmax(axis=1)


def buggy_bank(spare: int = 10) -> MlpBank:
    """Walks towards the gap, except where `BUG` says; some units have nothing to do yet."""
    rng = np.random.default_rng(7)
    low, high = BUG
    edges = [low - 0.02, low, high, high + 0.02]
    inside = [np.array([0.0, 1.0])] * 4 + [np.array([-1.0, 1.0]), np.array([1.0, -1.0])]
    first = np.column_stack([*inside, *(0.3 * rng.standard_normal((spare, 2)))])
    bias = np.array([*(-edge for edge in edges), 0.0, 0.0, *np.zeros(spare)])
    bump = np.array([1.0, -1.0, -1.0, 1.0]) / 0.02
    second = np.zeros((6 + spare, 3))
    second[:4, 2], second[:4, 0] = -3.0 * bump, 3.0 * bump
    second[4, 2], second[4, 0], second[5, 2], second[5, 0] = 1.0, -1.0, -1.0, 1.0
    return MlpBank.from_layers([[(first, bias), (second, np.array([0.0, 0.05, 0.0]))]])


def world(bank: MlpBank | None = None) -> Target:
    """The target, by default with the bug."""
    chosen = buggy_bank() if bank is None else bank
    return Target(
        name="gaps",
        inputs=InputSpace((Real("gap", -0.9, 0.9),)),
        simulator=Walk,
        policy=lambda: WalkPolicy(chosen),
        oracle=Below("clear", 0.0, kind="missed"),
        horizon=STEPS,
        policy_sha256=chosen.sha256,
        actions=ActionSpace.choices(("left", "stay", "right")),
        batch_size=64,
        samples=100,
    )


def bank_file(bank: MlpBank | None = None) -> PolicyFile:
    """The file of the policy of `world`."""
    chosen = buggy_bank() if bank is None else bank
    return PolicyFile(
        lambda: BankNetworks(chosen, Decision.HIGHEST, one_network, write_npz),
        ".npz",
        lambda file: f"gaps:{file}",
    )


def load(path: Path) -> Target:
    """`world` with the policy in a file."""
    return replace(world(read_npz(path)), policy_uri=f"gaps:{path}")
