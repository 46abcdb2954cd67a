"""People who own their loop: ask, run wherever they like, tell."""

import itertools

import numpy as np
import pytest

import policyfuzz as pf
from policyfuzz.core.errors import UsageError

SPACE = pf.InputSpace((pf.Real("x", 0, 1), pf.Real("y", 0, 1)))


def run(inputs):
    """Return and verdict of each input: a crash within 0.15 of a hidden place."""
    distances = np.hypot(inputs[:, 0] - 0.3, inputs[:, 1] - 0.7)
    return distances, distances < 0.15


@pytest.mark.parametrize("strategy", ["portfolio", "mdpfuzz", "reward", "random"])
@pytest.mark.parametrize("has_states", [True, False])
def test_plain_arrays_are_all_that_a_strategy_needs(strategy, has_states):
    fuzzer = pf.make_fuzzer(strategy, SPACE, pf.SearchSettings(samples=100), seed=1)
    found = []
    for _ in range(40):
        cases = fuzzer.ask(64)
        returns, crashed = run(cases.inputs)
        states = [np.linspace(0, 1, 4)[:, None] * row for row in cases.inputs] if has_states else None
        told = fuzzer.tell(cases, pf.Executions.of(returns, crashed, states))
        found.append(cases.inputs[told.crashed])
    crashes = np.concatenate(found)
    assert len(crashes) > 5
    assert run(crashes)[1].all()


def test_fuzzer_of_a_space_alone_samples():
    cases = pf.Fuzzer(SPACE, seed=3).ask(10)
    assert len(cases) == 10
    assert SPACE.is_valid(cases.inputs).all()


def test_sequences_of_any_length_are_padded():
    sequences = [np.array([0.5]), np.array([1, 2, 3]), np.zeros(2)]
    executions = pf.Executions.of([1.0, 2.0, 3.0], [False, True, False], sequences)
    assert executions.states.shape == (3, 3, 1)
    assert executions.lengths.tolist() == [1, 3, 2]
    assert executions.states[1, :, 0].tolist() == [1, 2, 3]
    assert executions.verdicts.steps.tolist() == [-1, 2, -1]
    assert executions.crashed.tolist() == [False, True, False]


def test_margins_say_where_to_go_when_the_return_is_flat():
    """A crash region of one in ten thousand, in a task that pays the same for everything else."""
    found = {True: 0, False: 0}
    for has_margins, seed in itertools.product(found, range(6)):
        fuzzer = pf.make_fuzzer("portfolio", SPACE, seed=seed)
        for _ in range(40):
            cases = fuzzer.ask(64)
            margins = np.abs(cases.inputs - [0.31, 0.72]).max(axis=1) - 0.005
            crashed = margins < 0
            given = margins if has_margins else None
            fuzzer.tell(cases, pf.Executions.of(np.zeros(len(cases)), crashed, margins=given))
            found[has_margins] += int(crashed.sum())
    assert found[True] > 100
    assert found[False] < found[True] / 4  # one seed alone may have luck


def test_rows_that_could_not_be_run_are_not_learnt_from():
    fuzzer = pf.make_fuzzer("reward", SPACE, pf.SearchSettings(samples=8), seed=1)
    cases = fuzzer.ask(8)
    executions = pf.Executions.of(np.arange(8.0), np.zeros(8), errors={2: "no answer", 5: "no answer"})
    told = fuzzer.tell(cases, executions)
    assert set(told.kept.tolist()) == {0, 1, 3, 4, 6, 7}


def test_parts_of_different_lengths_are_told():
    with pytest.raises(UsageError, match="2 returns, 3 verdicts, 3 sequences of states and 3 margins"):
        pf.Executions.of([1.0, 2.0], [True, False, True])


def test_no_executions_are_executions_too():
    assert len(pf.Executions.of([], [])) == 0
