"""The encounter as a Markov decision process, and its solution by value iteration.

Speeds never change, so that every pair of speeds is a problem of its own. The vertical separation is
lost `tau` seconds from now: until then the aircraft may cross, afterwards coming close costs. That time is an
estimate, so that coming close before it costs too, the less the longer it is to go. At tau = 0 the problem is
stationary; larger tau follow backwards from it, one second at a time.

An advisory acts on the motion alone, and the advisory before it on the switching costs alone. The score of
an advisory is therefore an outlook, shared by all previous advisories, plus a switching cost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from acasxu.grid import Grid
from acasxu.motion import MIRRORED, TURN_RATES, Floats, States, advance

STEP_SECONDS = 1.0
#: Seconds until vertical separation is lost, of the nine sets of networks.
TAU_SECONDS = (0, 1, 5, 10, 20, 40, 60, 80, 100)
#: Advisories that are computed; their mirror images follow from the symmetry of the encounter.
_LEFT_HALF = (0, 1, 3)
_SIDE = np.array([0, 1, -1, 1, -1])
#: Doubts below this are not worth a sweep.
_NEGLIGIBLE = 1e-4
_STRENGTH = np.array([0, 1, 1, 2, 2])

Table = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Costs:
    """What the decisions cost, in units of one collision."""

    close_feet: float = 400.0  #: a miss by this much counts 1/e of a collision
    alert: tuple[float, float] = (0.0005, 0.001)  #: each second of a weak, of a strong advisory
    start: float = 0.002  #: from clear of conflict to an advisory
    strengthen: float = 0.001  #: from a weak to a strong advisory
    weaken: float = 0.0005  #: from a strong to a weak one
    reverse: float = 0.02  #: from one side to the other
    doubt_seconds: float = 10.0  #: decay of the chance that vertical separation is lost before its time

    def collision(self, closest: Floats) -> Floats:
        """How much of a collision a closest approach (n,) is: 1 at no distance, falling smoothly."""
        return np.exp(-np.square(closest / self.close_feet))

    def doubt(self, tau: int) -> float:
        """Chance that there is no vertical separation although `tau` seconds of it are expected."""
        return float(np.exp(-tau / self.doubt_seconds))

    def switching(self) -> Table:
        """(5, 5) cost of giving advisory [column] when advisory [row] was given before."""
        alert = np.array([0.0, *self.alert])[_STRENGTH]
        before, after = _STRENGTH[:, None], _STRENGTH[None, :]
        cost = np.broadcast_to(alert, (5, 5)).copy()
        cost += self.start * ((before == 0) & (after > 0))
        cost += self.strengthen * ((before == 1) & (after == 2))
        cost += self.weaken * ((before == 2) & (after == 1))
        cost += self.reverse * (_SIDE[:, None] * _SIDE[None, :] < 0)
        return cost.astype(np.float32)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way in which a step may turn out: turns in addition to what was advised, radians a second."""

    probability: float
    own_rate: float
    intruder_rate: float


#: The intruder may turn either way by a degree a second.
OUTCOMES = (
    Outcome(0.5, 0.0, 0.0),
    Outcome(0.25, 0.0, float(np.deg2rad(1.0))),
    Outcome(0.25, 0.0, float(np.deg2rad(-1.0))),
)


@dataclass(frozen=True, slots=True)
class EncounterMdp:
    """The decision process of one pair of speeds."""

    grid: Grid
    costs: Costs = field(default_factory=Costs)
    outcomes: tuple[Outcome, ...] = OUTCOMES


@dataclass(frozen=True, slots=True)
class _Step:
    """What one second costs and where it leads, for the advisories of the left half."""

    collisions: tuple[Table, ...]  #: each (nodes,)
    onward: tuple[sparse.csr_array, ...]  #: each (nodes, nodes); rows sum to one minus the collisions


def best_values(outlooks: Table, switching: Table) -> Table:
    """(n, 5) cost to go for each previous advisory, from the outlook (n, 5) of each next advisory."""
    return np.stack([(outlooks + row).min(axis=1) for row in switching], axis=1)


def value_iteration(
    mdp: EncounterMdp, tolerance: float = 1e-4, most_sweeps: int = 120
) -> Iterator[tuple[int, Table]]:
    """Yield (tau, values (nodes, 5) by previous advisory) for tau = 0, 1, 2, ... without end.

    The stationary values look at most `most_sweeps` seconds ahead: what comes later hardly matters now.
    """
    switching = mdp.costs.switching()
    mirror = mdp.grid.mirror()
    values = np.zeros((mdp.grid.size, 5), np.float32)
    level, apart = _make_step(mdp, is_level=True), _make_step(mdp, is_level=False)
    for _ in range(most_sweeps):
        previous, values = values, best_values(_back_up(level, values, mirror), switching)
        if np.abs(values - previous).max() < tolerance:
            break
    tau = 0
    while True:
        yield tau, values
        tau += 1
        outlooks = _back_up(apart, values, mirror)
        if (doubt := mdp.costs.doubt(tau)) > _NEGLIGIBLE:
            outlooks += doubt * (_back_up(level, values, mirror) - outlooks)
        values = best_values(outlooks, switching)


def look_ahead(mdp: EncounterMdp, states: States, values: Table, taus: Sequence[int]) -> Table:
    """(n, 5, levels) outlooks of the advisories at any states and `taus`.

    `values` (nodes, 5, levels) are those one second later, by advisory and level.
    """
    outlooks = np.zeros((len(states.distance), 5, len(taus)), np.float32)
    doubt = np.array([mdp.costs.doubt(tau) for tau in taus], np.float32)
    for advisory, rate in enumerate(TURN_RATES):
        of_advisory = np.ascontiguousarray(values[:, advisory])
        for outcome in mdp.outcomes:
            after, closest = advance(
                states, mdp.grid.speeds, rate + outcome.own_rate, outcome.intruder_rate, STEP_SECONDS
            )
            numbers, weights = mdp.grid.corners(after)
            reached = np.zeros((len(numbers), len(taus)), np.float32)
            for corner in range(8):
                reached += weights[:, corner, None] * of_advisory[numbers[:, corner]]
            collision = mdp.costs.collision(closest).astype(np.float32)[:, None] * doubt
            outlooks[:, advisory] += outcome.probability * (collision + (1 - collision) * reached)
    return outlooks


def _back_up(step: _Step, values: Table, mirror: NDArray[np.int64]) -> Table:
    """(nodes, 5) outlook of each advisory, one second before `values` (nodes, 5)."""
    outlooks = np.empty_like(values)
    for half, advisory in enumerate(_LEFT_HALF):
        outlook = step.collisions[half] + step.onward[half] @ np.ascontiguousarray(values[:, advisory])
        outlooks[:, advisory] = outlook
        outlooks[:, MIRRORED[advisory]] = outlook[mirror]
    return outlooks


def _make_step(mdp: EncounterMdp, is_level: bool) -> _Step:
    """Tabulate one second from every node; collisions are possible when the aircraft are level."""
    nodes = mdp.grid.nodes()
    collisions, onward = [], []
    for advisory in _LEFT_HALF:
        rate = TURN_RATES[advisory]
        collision = np.zeros(mdp.grid.size)
        numbers, weights = [], []
        for outcome in mdp.outcomes:
            after, closest = advance(
                nodes, mdp.grid.speeds, rate + outcome.own_rate, outcome.intruder_rate, STEP_SECONDS
            )
            collides = mdp.costs.collision(closest) if is_level else np.zeros(mdp.grid.size)
            collision += outcome.probability * collides
            corner_numbers, corner_weights = mdp.grid.corners(after)
            numbers.append(corner_numbers)
            share = (outcome.probability * (1 - collides)).astype(np.float32)
            weights.append(corner_weights * share[:, None])
        collisions.append(collision.astype(np.float32))
        onward.append(_rows(np.hstack(numbers), np.hstack(weights), mdp.grid.size))
    return _Step(tuple(collisions), tuple(onward))


def _rows(numbers: NDArray[np.int32], weights: Table, size: int) -> sparse.csr_array:
    """The matrix whose row i holds `weights[i]` in the columns `numbers[i]`, equal columns added up."""
    starts = np.arange(0, numbers.size + 1, numbers.shape[1], dtype=np.int32)
    matrix = sparse.csr_array((weights.ravel(), numbers.ravel(), starts), shape=(size, size))
    matrix.sum_duplicates()
    return matrix
