from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import TargetCodeError
from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import Angle, InputSpace, Real
from policyfuzz.core.settings import DensitySettings
from policyfuzz.oracles import NONE, Verdicts
from policyfuzz.search.algorithm import RandomSearch
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.fuzzer import Fuzzer
from policyfuzz.search.guides import FreshnessGuide, ReturnGuide
from policyfuzz.search.mdpfuzz import EnergySearch

some_examples = settings(max_examples=30, deadline=None, derandomize=True)

SPACE = InputSpace(
    (Real("x", 0.0, 1.0, noise=0.05), Angle("a", noise=0.3)),
    constraint=lambda inputs: inputs[:, 0] > 0.1,
)


def solvable(inputs):
    return inputs[:, 0] < 0.9


def simulate(cases):
    """Episodes of five states round the input; those with x < 0.3 crash."""
    x, angle = cases.inputs.T
    time = np.arange(5)
    states = np.stack([x[:, None] + 0.1 * time, np.sin(angle[:, None] + 0.1 * time)], axis=2)
    kinds = np.where(x < 0.3, 0, NONE)
    return Executions(x**2 + 0.1 * np.cos(angle), np.full(len(x), 5), states, Verdicts(kinds, kinds))


def fuzzer_with(guides=("return", "freshness"), seed=0, **parts):
    made: dict[str, Any] = {
        "return": ReturnGuide,
        "freshness": lambda: FreshnessGuide(DensitySettings(components=2)),
    }
    if not guides:
        return Fuzzer(SPACE, solvable, RandomSearch(), seed)
    options = {"samples": 30} | parts
    return Fuzzer(SPACE, solvable, EnergySearch(tuple(made[name]() for name in guides), **options), seed)


def drive(fuzzer, batches, size=20, run=simulate):
    """Ask and tell in turn; all cases that were asked."""
    asked = [Cases.none(len(fuzzer.space.dimensions))]
    for _ in range(batches):
        asked.append(fuzzer.ask(size))
        fuzzer.tell(asked[-1], run(asked[-1]))
    return Cases.concatenate(asked)


def novel(crashes):
    """Inputs and descriptors of those of `crashes`, pairs of cases and update, that were novel."""
    inputs = [cases.inputs[update.crashed][update.observed.is_novel] for cases, update in crashes]
    found = [update.observed.behaviours.descriptors[update.observed.is_novel] for _, update in crashes]
    return np.concatenate([np.empty((0, 2)), *inputs]), np.concatenate(
        [np.empty((0, DESCRIPTOR_SIZE)), *found]
    )


def assert_same(first, second):
    for name in ("inputs", "seeds", "parents", "purposes"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def assert_same_observed(first, second):
    np.testing.assert_array_equal(first.roots, second.roots)
    np.testing.assert_array_equal(first.is_novel, second.is_novel)
    np.testing.assert_array_equal(first.behaviours.descriptors, second.behaviours.descriptors)


strategies = pytest.mark.parametrize(
    ("guides", "exact"),
    [(("return", "freshness"), False), (("return", "freshness"), True), (("return",), False), ((), False)],
    ids=["mdpfuzz lineage", "mdpfuzz exact", "reward", "random"],
)


@strategies
def test_cases_are_the_same_when_the_seed_is(guides, exact):
    first, second = (fuzzer_with(guides, seed=3, probes_mutants=exact) for _ in range(2))
    assert_same(drive(first, 12), drive(second, 12))


@strategies
def test_cases_differ_when_the_seed_does(guides, exact):
    first, second = (fuzzer_with(guides, seed=seed, probes_mutants=exact).ask(20) for seed in (3, 4))
    assert (first.inputs != second.inputs).all()
    assert (first.seeds != second.seeds).all()


@strategies
def test_every_asked_case_is_valid_and_solvable(guides, exact):
    cases = drive(fuzzer_with(guides, probes_mutants=exact), 15)
    assert SPACE.is_valid(cases.inputs).all()
    assert solvable(cases.inputs).all()


@strategies
def test_samples_have_seeds_of_their_own_and_what_is_changed_keeps_its_parents(guides, exact):
    fuzzer = fuzzer_with(guides, probes_mutants=exact, explored_share=0.3)
    cases = drive(fuzzer, 15)
    is_drawn = cases.parents == NO_PARENT
    assert len(np.unique(cases.seeds[is_drawn])) == np.count_nonzero(is_drawn)
    parents = cases.parents[~is_drawn]
    np.testing.assert_array_equal(cases.seeds[~is_drawn], fuzzer.corpus.column("case_seed")[parents])
    assert (len(parents) > 0) == bool(guides)


def test_samples_come_first_and_then_their_probes_and_then_mutants():
    fuzzer = fuzzer_with(samples=30)
    samples = drive(fuzzer, 1, size=40)
    assert samples.purposes.tolist() == [Purpose.SAMPLE] * 30
    assert (samples.parents == NO_PARENT).all()
    probes = fuzzer.ask(40)
    assert probes.purposes.tolist() == [Purpose.PROBE] * len(fuzzer.corpus)
    assert probes.parents.tolist() == list(range(len(fuzzer.corpus)))
    fuzzer.tell(probes, simulate(probes))
    mutants = fuzzer.ask(20)
    assert mutants.purposes.tolist() == [Purpose.MUTANT] * 20
    assert (mutants.parents >= 0).all()


def test_nothing_is_asked_while_samples_are_awaited():
    fuzzer = fuzzer_with(samples=30)
    first, second = fuzzer.ask(20), fuzzer.ask(20)
    assert (len(first), len(second), len(fuzzer.ask(20))) == (20, 10, 0)
    fuzzer.tell(first, simulate(first))
    probes = fuzzer.ask(100)
    assert (probes.purposes == Purpose.PROBE).all()
    assert len(fuzzer.ask(20)) == 0
    fuzzer.tell(second, simulate(second))
    assert (fuzzer.ask(100).purposes == Purpose.PROBE).all()


def test_mutants_are_asked_while_other_mutants_are_awaited():
    fuzzer = fuzzer_with()
    drive(fuzzer, 4)
    assert (fuzzer.ask(20).purposes == Purpose.MUTANT).all()
    assert len(fuzzer.ask(20)) == 20


def crash(cases):
    """Episodes that all crash at once."""
    count = len(cases)
    kinds = np.zeros(count, np.int64)
    return Executions(np.zeros(count), np.full(count, 1), np.zeros((count, 1, 2)), Verdicts(kinds, kinds))


@some_examples
@given(st.lists(st.integers(1, 40), min_size=1, max_size=15), st.integers(1, 3))
def test_no_more_is_asked_than_was_wanted_when_every_case_crashes(sizes, window):
    fuzzer, in_flight = fuzzer_with(guides=("return",), samples=25), []
    for size in sizes:
        cases = fuzzer.ask(size)
        assert len(cases) <= size
        in_flight.append(cases)
        if len(in_flight) >= window:
            oldest = in_flight.pop(0)
            fuzzer.tell(oldest, crash(oldest))


def test_sampling_goes_on_when_every_sample_crashed():
    fuzzer = fuzzer_with(guides=("return",), samples=25)
    cases = drive(fuzzer, 6, run=crash)
    assert (cases.purposes == Purpose.SAMPLE).all()
    assert len(cases) == 20 + 5 + 4 * 20


@some_examples
@given(st.integers(0, 1000), st.lists(st.integers(1, 40), min_size=5, max_size=15))
def test_no_more_is_asked_than_was_wanted(seed, sizes):
    fuzzer = fuzzer_with(guides=("return",), seed=seed, probes_mutants=bool(seed % 2))
    for size in sizes:
        cases = fuzzer.ask(size)
        assert len(cases) <= size
        fuzzer.tell(cases, simulate(cases))


@strategies
def test_crashed_cases_are_reported_and_never_kept(guides, exact):
    fuzzer = fuzzer_with(guides, probes_mutants=exact)
    crashed = 0
    for _ in range(15):
        cases = fuzzer.ask(20)
        update = fuzzer.tell(cases, simulate(cases))
        np.testing.assert_array_equal(update.crashed, np.flatnonzero(cases.inputs[:, 0] < 0.3))
        assert not set(update.crashed) & set(update.kept)
        crashed += len(update.crashed)
    assert crashed > 0
    assert (fuzzer.corpus.inputs[:, 0] >= 0.3).all()


def test_update_names_the_rows_that_entered_the_corpus():
    fuzzer = fuzzer_with(probes_mutants=True)
    for _ in range(15):
        cases = fuzzer.ask(20)
        executions = simulate(cases)
        update = fuzzer.tell(cases, executions)
        np.testing.assert_array_equal(fuzzer.corpus.inputs[update.entries], cases.inputs[update.kept])
        np.testing.assert_array_equal(
            fuzzer.corpus.column("parent")[update.entries], cases.parents[update.kept]
        )
        np.testing.assert_array_equal(
            fuzzer.corpus.column("return")[update.entries], executions.returns[update.kept]
        )
        assert not (cases.purposes[update.kept] == Purpose.PROBE).any()


def test_samples_that_did_not_crash_are_all_kept():
    fuzzer = fuzzer_with(samples=20)
    cases = fuzzer.ask(20)
    update = fuzzer.tell(cases, simulate(cases))
    assert len(update.kept) + len(update.crashed) == 20


def test_a_mutant_is_kept_when_it_earned_less_than_its_parent():
    fuzzer = fuzzer_with(guides=("return",))
    drive(fuzzer, 4)
    mutants = fuzzer.ask(50)
    executions = simulate(mutants)
    parent_returns = fuzzer.corpus.column("return")[mutants.parents].copy()
    update = fuzzer.tell(mutants, executions)
    expected = (executions.returns < parent_returns) & ~executions.crashed
    np.testing.assert_array_equal(update.kept, np.flatnonzero(expected))


def sensitivity(fuzzer, cases, executions):
    corpus = fuzzer.corpus
    change = np.abs(executions.returns - corpus.column("return")[cases.parents])
    return change / SPACE.distance(cases.inputs, corpus.inputs[cases.parents])


def test_energy_of_a_sample_is_measured_by_its_probe():
    fuzzer = fuzzer_with(samples=20)
    drive(fuzzer, 1)
    assert np.isnan(fuzzer.corpus.column("energy")).all()
    probes = fuzzer.ask(20)
    update = fuzzer.tell(probes, simulate(probes))
    np.testing.assert_array_equal(update.measured, np.arange(len(fuzzer.corpus)))
    np.testing.assert_allclose(
        fuzzer.corpus.column("energy"), sensitivity(fuzzer, probes, simulate(probes)), rtol=1e-12
    )


def test_energy_of_a_mutant_comes_from_its_parent_when_lineage_is_wanted():
    fuzzer = fuzzer_with(guides=("return",))
    drive(fuzzer, 4)
    mutants = fuzzer.ask(50)
    executions = simulate(mutants)
    update = fuzzer.tell(mutants, executions)
    assert len(update.entries) > 0
    expected = sensitivity(fuzzer, mutants[update.kept], executions[update.kept])
    np.testing.assert_allclose(fuzzer.corpus.column("energy")[update.entries], expected, rtol=1e-12)
    assert (fuzzer.ask(20).purposes == Purpose.MUTANT).all()


def test_energy_of_a_mutant_is_measured_by_a_probe_when_it_shall_be_exact():
    fuzzer = fuzzer_with(guides=("return",), probes_mutants=True)
    drive(fuzzer, 4)
    mutants = fuzzer.ask(50)
    kept = fuzzer.tell(mutants, simulate(mutants)).entries
    assert len(kept) > 0
    assert np.isnan(fuzzer.corpus.column("energy")[kept]).all()
    probes = fuzzer.ask(len(kept))
    assert (probes.purposes == Purpose.PROBE).all()
    np.testing.assert_array_equal(probes.parents, kept)
    update = fuzzer.tell(probes, simulate(probes))
    np.testing.assert_array_equal(update.measured, kept)
    np.testing.assert_allclose(
        fuzzer.corpus.column("energy")[kept], sensitivity(fuzzer, probes, simulate(probes)), rtol=1e-12
    )


def test_probes_are_small_steps_from_their_entries():
    fuzzer = fuzzer_with(samples=20)
    drive(fuzzer, 1)
    probes = fuzzer.ask(20)
    distances = SPACE.distance(probes.inputs, fuzzer.corpus.inputs[probes.parents])
    assert (distances > 0).all()
    assert (distances <= np.hypot(0.05, 0.3 / (2 * np.pi)) + 1e-12).all()


def test_search_goes_on_without_an_entry_when_that_has_no_good_neighbour():
    def island_first(rng, count):
        return np.where(np.arange(count) == 0, 0.25, rng.uniform(0.6, 1.0, count))[:, None]

    space = InputSpace(
        (Real("x", 0.0, 1.0),),
        constraint=lambda inputs: (inputs[:, 0] > 0.5) | (inputs[:, 0] == 0.25),
        sampler=island_first,
    )
    fuzzer = Fuzzer(space, None, EnergySearch((ReturnGuide(),), samples=5))

    def run(cases):
        nothing = np.full(len(cases), NONE)
        states = np.zeros((len(cases), 1, 1))
        return Executions(
            cases.inputs[:, 0], np.ones(len(cases), np.int64), states, Verdicts(nothing, nothing)
        )

    drive(fuzzer, 1, size=5, run=run)
    probes = drive(fuzzer, 1, size=5, run=run)
    assert probes.parents.tolist() == [1, 2, 3, 4]
    mutants = drive(fuzzer, 3, size=5, run=run)
    assert len(mutants) == 15
    assert 0 not in mutants.parents


def test_random_search_never_mutates_and_learns_nothing():
    fuzzer = fuzzer_with(guides=())
    cases = drive(fuzzer, 10)
    assert len(cases) == 200
    assert (cases.purposes == Purpose.SAMPLE).all()
    assert len(fuzzer.corpus) == 0


def test_random_search_never_waits():
    fuzzer = fuzzer_with(guides=(), samples=30)
    assert [len(fuzzer.ask(20)) for _ in range(5)] == [20] * 5


@strategies
@pytest.mark.parametrize("batches", [0, 1, 3, 8])
def test_a_restored_fuzzer_continues_identically(guides, exact, batches):
    original, crashes = fuzzer_with(guides, seed=5, probes_mutants=exact), []
    for _ in range(batches):
        cases = original.ask(20)
        crashes.append((cases, original.tell(cases, simulate(cases))))
    waiting = original.ask(20)  # results may arrive after the restart
    state = {name: array.copy() for name, array in original.state().items()}
    restored = fuzzer_with(guides, seed=5, probes_mutants=exact)
    restored.restore(state, deepcopy(original.corpus), *novel(crashes))
    updates = [fuzzer.tell(waiting, simulate(waiting)) for fuzzer in (original, restored)]
    for _ in range(6):
        cases, same = original.ask(20), restored.ask(20)
        assert_same(cases, same)
        updates += [fuzzer.tell(cases, simulate(cases)) for fuzzer in (original, restored)]
    for first, second in zip(updates[::2], updates[1::2], strict=True):
        assert_same_observed(first.observed, second.observed)
    assert restored.validator.drawn == original.validator.drawn
    assert restored.validator.invalid == original.validator.invalid
    assert restored.validator.unsolvable == original.validator.unsolvable
    np.testing.assert_array_equal(restored.corpus.column("energy"), original.corpus.column("energy"))
    np.testing.assert_array_equal(
        restored.corpus.column("log_density"), original.corpus.column("log_density")
    )


def test_threshold_and_fresh_share_are_those_of_the_freshness_guide():
    fuzzer = fuzzer_with()
    drive(fuzzer, 6)
    guide = fuzzer.algorithm.guides[1]
    assert (fuzzer.algorithm.fresh_threshold, fuzzer.algorithm.fresh_share) == (
        guide.threshold,
        guide.fresh_share,
    )
    assert np.isfinite(fuzzer.algorithm.fresh_threshold)


def test_threshold_and_fresh_share_are_unknown_when_there_is_no_freshness_guide():
    fuzzer = fuzzer_with(guides=("return",))
    assert np.isnan(fuzzer.algorithm.fresh_threshold)
    assert np.isnan(fuzzer.algorithm.fresh_share)


def test_a_share_of_later_batches_is_sampled_when_exploring():
    fuzzer = fuzzer_with(guides=("return",), explored_share=0.25)
    drive(fuzzer, 6)  # samples, then their probes
    cases = fuzzer.ask(40)
    explorers = cases[cases.purposes == Purpose.EXPLORE]
    assert len(explorers) == 10
    assert (explorers.parents == NO_PARENT).all()
    assert np.count_nonzero(cases.purposes == Purpose.MUTANT) == 30


def survive(cases):
    """As `simulate`, but nothing ever crashes."""
    executions, nothing = simulate(cases), np.full(len(cases), NONE)
    return Executions(executions.returns, executions.lengths, executions.states, Verdicts(nothing, nothing))


@pytest.mark.parametrize(("guides", "grows"), [(("return",), False), (("return", "freshness"), True)])
def test_an_explorer_is_kept_only_when_it_is_fresh(guides, grows):
    fuzzer = fuzzer_with(guides, explored_share=1.0)
    drive(fuzzer, 6, run=survive)  # samples, then their probes
    size = len(fuzzer.corpus)
    drive(fuzzer, 30, run=survive)
    assert (len(fuzzer.corpus) > size) is grows


@pytest.mark.parametrize("parts", [{"explored_share": 0.5}, {"probes_mutants": True}])
def test_batches_are_full_when_probes_ride_along(parts):
    fuzzer = fuzzer_with(**parts)
    drive(fuzzer, 6)
    sizes = [len(drive(fuzzer, 1)) for _ in range(20)]
    assert set(sizes) == {20}


def test_case_seed_that_cannot_be_stored_is_refused():
    class WideSeeds(RandomSearch):
        def probe(self, context, rng, count):
            cases = context.sample(Purpose.PROBE, rng, count)
            return replace(cases, seeds=cases.seeds | np.uint64(2**63))

    fuzzer = Fuzzer(InputSpace((Real("x", 0, 1),)), algorithm=WideSeeds())
    with pytest.raises(TargetCodeError, match=r"case seed [0-9]+, expected less than 2\^63"):
        fuzzer.ask(5)


def test_inputs_alone_decide_what_is_novel_where_states_say_nothing():
    fuzzer = fuzzer_with(guides=())
    novel = 0
    for _ in range(10):
        cases = fuzzer.ask(64)
        update = fuzzer.tell(cases, Executions.of(np.zeros(64), cases.inputs[:, 0] < 0.3))
        novel += int(update.observed.is_novel.sum())
    assert novel > 10
