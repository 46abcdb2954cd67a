"""The search as the published code does it: parents that run out."""

from collections import Counter
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from policyfuzz.core.errors import UsageError
from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.core.settings import PublishedSettings, SearchSettings
from policyfuzz.oracles import NONE, Verdicts
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.published import published_settings
from policyfuzz.search.strategies import find_strategy, make_fuzzer

SPACE = InputSpace((Real("x", 0.0, 1.0, noise=0.05), Real("y", 0.0, 10.0, noise=0.5)))
RECIPES = ("mdpfuzz-published", "reward-published")
every_recipe = pytest.mark.parametrize("recipe", RECIPES)


def simulate(cases):
    """Episodes of five states; those with x < 0.2 crash, and the return falls towards them."""
    x, y = cases.inputs.T
    states = np.stack([x[:, None] + 0.1 * np.arange(5), np.repeat(np.sin(y)[:, None], 5, axis=1)], axis=2)
    kinds = np.where(x < 0.2, 0, NONE)
    return Executions(x**2 + 0.01 * np.cos(y), np.full(len(x), 5), states, Verdicts(kinds, kinds))


def fuzzer_with(recipe, samples=64, seed=0, **published):
    settings = published_settings(SearchSettings(samples=samples), "some")
    settings = replace(settings, published=replace(settings.published, **published))
    return make_fuzzer(recipe, SPACE, settings, seed)


def drive(fuzzer, batches, size=20, run=simulate, found=None):
    """Ask and tell in turn; all cases. Appends inputs and descriptors of novel crashes to `found`."""
    asked = [Cases.none(2)]
    for _ in range(batches):
        asked.append(fuzzer.ask(size))
        update = fuzzer.tell(asked[-1], run(asked[-1]))
        if found is not None:
            novel = update.observed.is_novel
            inputs = asked[-1].inputs[update.crashed][novel]
            found += zip(inputs, update.observed.behaviours.descriptors[novel], strict=True)
    return Cases.concatenate(asked)


def drive_to_the_end(fuzzer, run=simulate):
    """Ask and tell until nothing is asked any more; cases and results."""
    asked, results = [], []
    while len(cases := fuzzer.ask(20)):
        asked.append(cases)
        results.append(run(cases))
        fuzzer.tell(cases, results[-1])
    return Cases.concatenate(asked), np.concatenate([result.crashed for result in results])


def assert_same(first, second):
    for name in ("inputs", "seeds", "parents", "purposes"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@every_recipe
def test_cases_are_the_same_when_the_seed_is(recipe):
    first, second = (drive(fuzzer_with(recipe, seed=3), 60) for _ in range(2))
    assert_same(first, second)
    assert (first.purposes == Purpose.MUTANT).any()


@every_recipe
@pytest.mark.parametrize("batches", [0, 1, 6, 40, 150])
def test_a_restored_fuzzer_continues_identically(recipe, batches):
    original, restored = (fuzzer_with(recipe, samples=24, seed=5, children=2) for _ in range(2))
    found = []
    drive(original, batches, found=found)
    waiting = original.ask(20)  # results may arrive after the restart
    state = {name: array.copy() for name, array in original.state().items()}
    inputs = np.array([one for one, _ in found]).reshape(-1, 2)
    descriptors = np.array([one for _, one in found]).reshape(-1, DESCRIPTOR_SIZE)
    restored.restore(state, deepcopy(original.corpus), inputs, descriptors)
    for fuzzer in (original, restored):
        fuzzer.tell(waiting, simulate(waiting))
    assert_same(drive(original, 60), drive(restored, 60))


def test_search_ends_when_the_corpus_is_empty_and_it_shall_stop():
    fuzzer = fuzzer_with("reward-published", when_empty="stop", children=3)
    cases, _ = drive_to_the_end(fuzzer)
    assert not (cases.purposes == Purpose.EXPLORE).any()
    assert [len(fuzzer.ask(20)) for _ in range(3)] == [0, 0, 0]


def test_corpus_is_refilled_when_it_is_empty_and_the_search_shall_go_on():
    fuzzer, stopping = (
        fuzzer_with("reward-published", samples=32, children=2, when_empty=choice)
        for choice in ("refill", "stop")
    )
    until_empty, _ = drive_to_the_end(stopping)
    cases = drive(fuzzer, 150)
    assert_same(cases[: len(until_empty)], until_empty)
    later = cases[len(until_empty) :]
    refilled = np.flatnonzero(later.purposes == Purpose.EXPLORE)
    assert refilled[0] == 0
    assert len(refilled) % 32 == 0
    assert (later.parents[refilled] == NO_PARENT).all()
    assert np.count_nonzero(later.purposes == Purpose.MUTANT) > 0


def test_a_parent_has_no_child_after_one_was_kept_or_crashed_and_none_too_many():
    fuzzer = fuzzer_with("reward-published", when_empty="stop", children=4)
    births, done = Counter[int](), set()
    while len(cases := fuzzer.ask(20)):
        mutants = np.flatnonzero(cases.purposes == Purpose.MUTANT)
        parents = cases.parents[mutants].tolist()
        assert not done & set(parents)
        births.update(parents)
        executions = simulate(cases)
        update = fuzzer.tell(cases, executions)
        ends = set(update.kept.tolist()) | set(update.crashed.tolist())
        done |= {int(cases.parents[row]) for row in mutants if row in ends}
    assert max(births.values()) == 4
    childless = set(range(len(fuzzer.corpus))) - set(births)
    assert not childless, "every entry is changed before the search ends"
    assert all(births[entry] == 4 for entry in births if entry not in done)


def test_all_parents_run_out_however_large_the_window():
    fuzzer, in_flight, count = fuzzer_with("reward-published", samples=32, when_empty="stop"), [], 0
    while True:
        while len(in_flight) < 3 and len(cases := fuzzer.ask(20)):
            in_flight.append(cases)
        if not in_flight:
            break
        oldest = in_flight.pop(0)
        fuzzer.tell(oldest, simulate(oldest))
        count += len(oldest)
    assert count > 64
    assert len(fuzzer.ask(20)) == 0


@pytest.mark.parametrize("are_parents", [True, False])
def test_crashed_samples_are_parents_when_they_shall_be(are_parents):
    fuzzer = fuzzer_with("reward-published", crashed_samples=are_parents, when_empty="stop")
    drive_to_the_end(fuzzer)
    corpus = fuzzer.corpus
    is_crash = corpus.column("is_crash")
    np.testing.assert_array_equal(is_crash, corpus.inputs[:, 0] < 0.2)
    assert is_crash.any() == are_parents
    assert (corpus.column("parent")[is_crash] == NO_PARENT).all(), "crashed mutants never are"


def test_energy_is_the_change_of_the_return_alone():
    fuzzer = fuzzer_with("reward-published", samples=20)
    drive(fuzzer, 1)
    probes = fuzzer.ask(20)
    assert (probes.purposes == Purpose.PROBE).all()
    fuzzer.tell(probes, simulate(probes))
    corpus = fuzzer.corpus
    expected = np.abs(simulate(probes).returns - corpus.column("return")[probes.parents])
    np.testing.assert_array_equal(corpus.column("energy")[probes.parents], expected)


def test_parents_without_a_good_neighbour_leave_and_the_corpus_is_refilled():
    lonely = InputSpace(
        (Real("x", 0.0, 1.0),), constraint=lambda inputs: inputs[:, 0] == np.round(inputs[:, 0], 2)
    )
    sampled = replace(lonely, sampler=lambda rng, count: np.round(rng.random((count, 1)), 2))
    settings = published_settings(SearchSettings(samples=10), "some")
    fuzzer = make_fuzzer("reward-published", sampled, settings)

    def run(cases):
        nothing = np.full(len(cases), NONE)
        states = np.zeros((len(cases), 1, 1))
        return Executions(
            cases.inputs[:, 0], np.ones(len(cases), np.int64), states, Verdicts(nothing, nothing)
        )

    for _ in range(5):
        cases = fuzzer.ask(10)
        assert len(cases) == 10
        assert set(cases.purposes.tolist()) <= {Purpose.SAMPLE, Purpose.EXPLORE}
        fuzzer.tell(cases, run(cases))


def test_more_is_kept_with_freshness():
    sizes = []
    for recipe in RECIPES:
        fuzzer = fuzzer_with(recipe)
        drive(fuzzer, 60)
        sizes.append(len(fuzzer.corpus))
    assert sizes[0] > sizes[1]


def test_threshold_and_fresh_share_are_those_of_the_published_guide():
    fuzzer = fuzzer_with("mdpfuzz-published")
    drive(fuzzer, 10)
    assert fuzzer.algorithm.fresh_threshold == pytest.approx(np.log(0.01))
    assert 0 <= fuzzer.algorithm.fresh_share <= 1


@pytest.mark.parametrize(
    ("target", "components", "children", "tau", "samples"),
    [
        ("acasxu", 5, 5, 0.1, 1000),
        ("acasxu:bucket=3", 5, 5, 0.1, 1000),
        ("coopnavi", 1, 20, 0.01, 3000),
        ("bipedal", 10, 5, 0.02, 1000),
        ("driving-rl", 10, 5, 0.1, 50),
        ("gym:CartPole-v1:bounds=wide", 10, 5, 0.01, 77),
    ],
)
def test_constants_are_those_of_the_published_code(target, components, children, tau, samples):
    for recipe in RECIPES:
        settings = find_strategy(recipe).defaults(SearchSettings(samples=77), target)
        assert settings.density.components == components
        assert settings.density.forgetting == 0.1
        assert settings.published.children == children
        assert settings.freshness.threshold == pytest.approx(np.log(tau))
        assert settings.samples == samples


@pytest.mark.parametrize("recipe", ["portfolio", "mdpfuzz", "reward", "random"])
def test_other_strategies_have_the_usual_settings(recipe):
    assert find_strategy(recipe).defaults(SearchSettings(samples=77), "acasxu") == SearchSettings(samples=77)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"children": 0}, "children is 0, expected 1 or more"), ({"when_empty": "stpo"}, "did you mean 'stop'")],
)
def test_settings_that_make_no_sense_are_refused(settings, complaint):
    with pytest.raises(UsageError) as raised:
        PublishedSettings(**settings)
    assert complaint in f"{raised.value} {raised.value.hint}"
