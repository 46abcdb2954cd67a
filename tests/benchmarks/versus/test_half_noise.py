"""The naive baseline: what it runs, and that it descends from its own crashes."""

from dataclasses import replace

import numpy as np

from benchmarks.versus.peers.half_noise import HalfNoise
from policyfuzz import load_target
from policyfuzz.oracles import Below


def test_without_a_crash_every_input_is_a_random_draw():
    target = replace(load_target("ripple"), oracle=Below("gap", -1e9, kind="caught"))
    assert len(HalfNoise()(target, 600, 0).numbers) == 0


def test_half_of_the_episodes_vary_known_crashes_once_there_is_one():
    target = replace(load_target("ripple"), oracle=Below("gap", 1e9, kind="caught"), batch_size=100)
    trial = HalfNoise()(target, 1000, 0)
    assert trial.roots is not None
    # all of the first batch are draws, and half of each that follows
    assert len(np.unique(trial.roots)) == 100 + 9 * 50
    assert len(np.unique(trial.inputs, axis=0)) == 1000


def test_mutants_lie_near_their_root_and_share_its_case_seed():
    target = load_target("ripple:dimensions=2,probability=0.05")
    trial = HalfNoise()(target, 2000, 1)
    assert trial.roots is not None
    roots, sizes = np.unique(trial.roots, return_counts=True)
    assert sizes.max() > 3
    largest = trial.roots == roots[sizes.argmax()]
    assert len(np.unique(trial.seeds[largest])) == 1
    assert len(np.unique(trial.seeds)) == len(roots)


def test_it_finds_more_than_random_but_not_in_more_places():
    """Three small boxes, so that places are easy to count."""
    target = load_target("ripple:dimensions=2,regions=3,probability=0.01")
    trial = HalfNoise()(target, 3000, 0)
    expected_of_random = 0.03 * 3000
    assert len(trial.numbers) > 2 * expected_of_random
    assert trial.roots is not None
    assert len(np.unique(trial.roots)) < 1.2 * expected_of_random
