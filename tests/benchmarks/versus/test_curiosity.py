"""Curiosity: what was seen often is no longer new."""

from dataclasses import replace

import numpy as np

from benchmarks.versus.peers.curiosity import Curiosity, Pool
from benchmarks.versus.peers.distillation import Distillation, thin
from policyfuzz import Executions, load_target
from policyfuzz.oracles import Below


def sequences(centre: float, count: int = 50) -> np.ndarray:
    """(count, 32, 3) Noise about `centre`."""
    return np.random.default_rng(0).normal(centre, 0.1, (count, 32, 3))


def test_novelty_falls_where_states_are_learnt_and_stays_where_not():
    curiosity = Distillation(np.random.default_rng(1))
    curiosity.fit_scale(np.concatenate([sequences(0.0), sequences(1.0)]))
    before = curiosity.novelty(sequences(0.0)).mean()
    for _ in range(20):
        curiosity.learn(sequences(0.0))
    known, unknown = curiosity.novelty(sequences(0.0)).mean(), curiosity.novelty(sequences(1.0)).mean()
    assert known < 0.05 * before
    assert unknown > 10 * known


def test_learning_follows_the_slope_of_the_error():
    curiosity = Distillation(np.random.default_rng(1))
    curiosity.fit_scale(sequences(0.0))
    states = curiosity._scaled(sequences(0.0))[0]
    gradients = curiosity._gradients(states)
    for layer, gradient in zip(curiosity._layers, gradients, strict=True):
        place = (1,) * layer.ndim
        losses = []
        for step in (1e-6, -2e-6):
            layer[place] += step
            losses.append(curiosity.novelty(sequences(0.0)[:1])[0])
        layer[place] += 1e-6
        np.testing.assert_allclose(gradient[place], (losses[0] - losses[1]) / 2e-6, rtol=1e-4, atol=1e-9)


def test_states_that_are_no_numbers_do_not_spoil_the_network():
    curiosity = Distillation(np.random.default_rng(1))
    curiosity.fit_scale(sequences(0.0))
    wild = sequences(0.0)
    wild[0, 0], wild[1, 0] = np.inf, np.nan
    curiosity.learn(wild)
    assert np.isfinite(curiosity.novelty(wild)).all()


def test_thinned_sequence_has_first_and_last_state_and_none_behind_the_end():
    states = [np.arange(1.0, 101.0)[:, None], np.arange(1.0, 4.0)[:, None]]
    thinned = thin(Executions.of([0.0, 0.0], [False, False], states))
    np.testing.assert_array_equal(thinned[:, 0, 0], [1.0, 1.0])
    np.testing.assert_array_equal(thinned[:, -1, 0], [100.0, 3.0])
    assert thinned.min() > 0


def test_pool_prefers_what_is_novel_or_earned_little():
    pool = Pool.empty(1)
    values = np.arange(10.0)
    novelty = np.where(values == 5, 9.0, 0.0)
    pool.add(values[:, None], np.arange(10, dtype=np.uint64), values, novelty)
    chosen = np.bincount(pool.choose(np.random.default_rng(0), 1000), minlength=10)
    assert set(np.argsort(chosen)[-2:].tolist()) == {0, 5}


def test_random_inputs_are_run_where_every_input_crashes():
    target = replace(load_target("ripple"), oracle=Below("gap", 1e9, kind="caught"))
    trial = Curiosity()(target, 600, 0)
    assert trial.numbers.tolist() == list(range(1, 601))
    assert len(np.unique(trial.inputs, axis=0)) == 600
