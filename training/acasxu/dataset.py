"""The training set: what the networks see, and the outlook of every advisory there."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acasxu.encounter_mdp import TAU_SECONDS, Table, look_ahead
from acasxu.motion import Floats, Speeds, States
from acasxu.tables import VALUE_LEVELS, TableFolder
from acasxu.training_states import Mixture, draw_states
from policyfuzz.targets.acasxu.encounter import OBSERVATION_CENTRE, OBSERVATION_SPAN


@dataclass(frozen=True, slots=True)
class Dataset:
    """Training states in random order."""

    observations: Table  #: (n, 5) normalised
    outlooks: Table  #: (n, 5, 9) by advisory and bucket, before switching costs


def make_dataset(folder: TableFolder, states_per_pair: int, seed: int) -> Dataset:
    """Draw states at each solved pair of speeds and look their outlooks up in its table."""
    problem = folder.problem()
    pairs = [pair for pair in range(problem.pairs_per_side**2) if folder.has(pair)]
    observations = np.empty((len(pairs) * states_per_pair, 5), np.float32)
    outlooks = np.empty((len(observations), 5, len(TAU_SECONDS)), np.float32)
    order = np.random.default_rng([seed, len(pairs)]).permutation(len(observations))
    for i, pair in enumerate(pairs):
        mdp = problem.mdp(pair)
        rng = np.random.default_rng([seed, 1, pair])
        states = draw_states(rng, states_per_pair, mdp.grid.speeds, Mixture())
        rows = order[i * states_per_pair : (i + 1) * states_per_pair]
        observations[rows] = observe(states, mdp.grid.speeds)
        outlooks[rows] = look_ahead(mdp, states, folder.load(pair)[..., list(VALUE_LEVELS)], TAU_SECONDS)
    return Dataset(observations, outlooks)


def cached_dataset(path: Path, folder: TableFolder, states_per_pair: int, seed: int) -> Dataset:
    """The training set from `path` if it is there, else made and kept there for the next start."""
    if not path.exists():
        print(f"making the training set {path}", file=sys.stderr, flush=True)
        dataset = make_dataset(folder, states_per_pair, seed)
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, observations=dataset.observations, outlooks=dataset.outlooks)
        partial.replace(path)
    with np.load(path) as arrays:
        return Dataset(arrays["observations"], arrays["outlooks"])


def observe(states: States, speeds: Speeds) -> Floats:
    """(n, 5) what the networks see of the states."""
    count = len(states.distance)
    seen = np.column_stack(
        [
            states.distance,
            states.bearing,
            states.heading,
            np.broadcast_to(speeds.own, count),
            np.broadcast_to(speeds.intruder, count),
        ]
    )
    normalised: Floats = (seen - OBSERVATION_CENTRE) / OBSERVATION_SPAN
    return normalised
