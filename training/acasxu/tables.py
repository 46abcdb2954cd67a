"""Value tables on disk: one file for each pair of speeds that was solved."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from acasxu.encounter_mdp import TAU_SECONDS, Costs, EncounterMdp, Table
from acasxu.grid import make_grid
from acasxu.motion import Floats, Speeds

OWN_SPEED = (10.0, 1100.0)
INTRUDER_SPEED = (0.0, 1200.0)
#: Scores look one second ahead: these are the tau whose values they look at.
VALUE_TAU_SECONDS = tuple(tau - 1 for tau in TAU_SECONDS[1:])
#: Which of them belongs to each of TAU_SECONDS; at tau = 0 time has stopped.
VALUE_LEVELS = (0, *range(len(VALUE_TAU_SECONDS)))


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything that the tables depend on; kept beside them so that no two runs are mixed."""

    pairs_per_side: int = 12
    distances: int = 40
    offsets: int = 32
    headings: int = 36
    seed: int = 1
    costs: Costs = field(default_factory=Costs)

    def speed_pairs(self) -> Floats:
        """(pairs_per_side ** 2, 2) own and intruder speeds: one in each cell of a chequerboard.

        Scattered pairs teach the networks more about the speeds between them than a plain grid does. They
        come in random order: the first few dozen are a coarser sample of the same plane.
        """
        rng = np.random.default_rng([self.seed, 0])
        cell = np.stack(np.divmod(np.arange(self.pairs_per_side**2), self.pairs_per_side), axis=1)
        share = (cell + rng.uniform(size=cell.shape)) / self.pairs_per_side
        # The outermost cells lie on the border itself, so that no speed is outside of what was solved.
        share[cell == 0] = 0.0
        share[cell == self.pairs_per_side - 1] = 1.0
        low, high = np.array([OWN_SPEED, INTRUDER_SPEED]).T
        return rng.permutation(low + share * (high - low))

    def mdp(self, pair: int) -> EncounterMdp:
        """The decision process of speed pair number `pair`."""
        own, intruder = self.speed_pairs()[pair]
        grid = make_grid(Speeds(float(own), float(intruder)), self.distances, self.offsets, self.headings)
        return EncounterMdp(grid, self.costs)


@dataclass(frozen=True, slots=True)
class TableFolder:
    """A folder with `problem.json` and one `pair_NNN.npy` per pair: values (nodes, 5, 8) as float32."""

    path: Path

    def claim(self, problem: Problem) -> None:
        """Make the folder, or check that what is in it belongs to `problem`."""
        self.path.mkdir(parents=True, exist_ok=True)
        note = self.path / "problem.json"
        if not note.exists():
            note.write_text(json.dumps(asdict(problem), indent=2) + "\n")
        elif self.problem() != problem:
            raise SystemExit(f"{self.path} holds tables of another problem: give another folder, or empty it")

    def problem(self) -> Problem:
        """The problem that the tables here solve."""
        fields = json.loads((self.path / "problem.json").read_text())
        costs = fields.pop("costs")
        costs["alert"] = tuple(costs["alert"])
        return Problem(costs=Costs(**costs), **fields)

    def has(self, pair: int) -> bool:
        """Whether this pair was solved already."""
        return self._file(pair).exists()

    def save(self, pair: int, values: Table) -> None:
        """Write the values of a pair; an interruption leaves no half-written table."""
        partial = self.path / f"partial_{pair:03d}.npy"
        np.save(partial, values)
        partial.replace(self._file(pair))

    def load(self, pair: int) -> Table:
        """Values (nodes, 5, 8) by previous advisory and `VALUE_TAU_SECONDS`."""
        values: Table = np.load(self._file(pair))
        return values

    def _file(self, pair: int) -> Path:
        return self.path / f"pair_{pair:03d}.npy"
