"""Solve the encounter for many pairs of speeds and save the tables: `python -m acasxu.solve_tables`."""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from acasxu.encounter_mdp import EncounterMdp, Table, value_iteration
from acasxu.tables import VALUE_TAU_SECONDS, Problem, TableFolder


def main() -> None:
    """Solve whatever pair is not on disk yet."""
    arguments = _parser().parse_args()
    problem = Problem(pairs_per_side=arguments.pairs_per_side, seed=arguments.seed)
    folder = TableFolder(arguments.out)
    folder.claim(problem)
    pairs = problem.pairs_per_side**2
    for pair in range(pairs):
        if folder.has(pair):
            continue
        start = time.perf_counter()
        mdp = problem.mdp(pair)
        folder.save(pair, solve(mdp))
        seconds = time.perf_counter() - start
        speeds = mdp.grid.speeds
        print(
            f"pair {pair + 1}/{pairs}  own {speeds.own:.0f}  intruder {speeds.intruder:.0f}  {seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )


def solve(mdp: EncounterMdp) -> Table:
    """Values (nodes, 5, levels) by previous advisory at each of `VALUE_TAU_SECONDS`."""
    levels = []
    for tau, values in value_iteration(mdp):
        if tau in VALUE_TAU_SECONDS:
            levels.append(values)
        if tau == VALUE_TAU_SECONDS[-1]:
            break
    return np.stack(levels, axis=2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables (about 1 GB)")
    parser.add_argument("--pairs-per-side", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    main()
