"""What the search does with cases that it did not ask for."""

import numpy as np
import pytest

from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.core.settings import SearchSettings
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.strategies import make_fuzzer

SPACE = InputSpace((Real("x", 0.0, 1.0), Real("y", 0.0, 1.0)))


def simulate(cases):
    """Episodes of three states; those with x < 0.3 crash."""
    x = cases.inputs[:, 0]
    states = [np.column_stack([row + 0.1 * np.arange(3)[:, None]]) for row in cases.inputs]
    return Executions.of(x + cases.inputs[:, 1], x < 0.3, states)


def imports(count, number=7):
    rng = np.random.default_rng(99)
    seeds = np.arange(1000, 1000 + count, dtype=np.uint64)
    return Cases.of(Purpose.IMPORT, rng.random((count, 2)), seeds, np.full(count, number, np.int64))


def warm_fuzzer(strategy="mdpfuzz", sensitivity="lineage"):
    fuzzer = make_fuzzer(strategy, SPACE, SearchSettings(samples=30, sensitivity=sensitivity), seed=1)
    while not fuzzer.is_warm:
        cases = fuzzer.ask(20)
        fuzzer.tell(cases, simulate(cases))
    return fuzzer


def tell_with(fuzzer, others):
    asked = fuzzer.ask(20)
    cases = Cases.concatenate([asked, others])
    return asked, fuzzer.tell(cases, simulate(cases))


@pytest.mark.parametrize("sensitivity", ["lineage", "exact"])
@pytest.mark.parametrize("strategy", ["mdpfuzz", "reward"])
def test_import_is_kept_without_a_parent_unless_it_crashed(strategy, sensitivity):
    fuzzer, others = warm_fuzzer(strategy, sensitivity), imports(16)
    asked, update = tell_with(fuzzer, others)
    expected = len(asked) + np.flatnonzero(others.inputs[:, 0] >= 0.3)
    assert 0 < len(expected) < 16
    np.testing.assert_array_equal(update.kept[update.kept >= len(asked)], expected)
    crashed = len(asked) + np.flatnonzero(others.inputs[:, 0] < 0.3)
    np.testing.assert_array_equal(update.crashed[update.crashed >= len(asked)], crashed)
    entries = update.entries[update.kept >= len(asked)]
    assert (fuzzer.corpus.column("parent")[entries] == NO_PARENT).all()
    np.testing.assert_array_equal(
        fuzzer.corpus.column("case_seed")[entries], others.seeds[expected - len(asked)]
    )


def test_energy_of_an_import_is_measured_by_a_probe():
    fuzzer = warm_fuzzer()
    asked, update = tell_with(fuzzer, imports(16))
    entries = update.entries[update.kept >= len(asked)]
    assert np.isnan(fuzzer.corpus.column("energy")[entries]).all()
    for _ in range(3):
        cases = fuzzer.ask(20)
        fuzzer.tell(cases, simulate(cases))
    assert np.isfinite(fuzzer.corpus.column("energy")[entries]).all()


def test_imports_become_parents_of_mutants():
    fuzzer = warm_fuzzer("reward")
    asked, update = tell_with(fuzzer, imports(16))
    entries = update.entries[update.kept >= len(asked)]
    parents: set[int] = set()
    for _ in range(20):
        cases = fuzzer.ask(20)
        parents |= set(cases.parents[cases.purposes == Purpose.MUTANT].tolist())
        fuzzer.tell(cases, simulate(cases))
    assert parents & set(entries.tolist())


def test_search_that_keeps_nothing_only_reports_crashes():
    fuzzer, others = warm_fuzzer("random"), imports(16)
    asked, update = tell_with(fuzzer, others)
    assert len(update.kept) == len(fuzzer.corpus) == 0
    assert (update.crashed >= len(asked)).sum() == (others.inputs[:, 0] < 0.3).sum()


def test_search_is_not_warm_before_its_samples_are_probed():
    fuzzer = make_fuzzer("mdpfuzz", SPACE, SearchSettings(samples=30), seed=1)
    cases = fuzzer.ask(64)
    assert not fuzzer.is_warm
    fuzzer.tell(cases, simulate(cases))
    probes = fuzzer.ask(64)
    assert not fuzzer.is_warm
    fuzzer.tell(probes, simulate(probes))
    fuzzer.ask(64)
    assert fuzzer.is_warm
