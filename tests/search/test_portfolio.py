from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, kstest

from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import Angle, Choice, InputSpace, Integer, Real, Seed
from policyfuzz.core.settings import DISTINCT_RADIUS, SearchSettings
from policyfuzz.oracles import Verdicts
from policyfuzz.search import emitters
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.corpus import COLUMNS
from policyfuzz.search.emitters import FIRST_CLIMBER, SEEKERS, WALKERS, Emitter, emitters_of
from policyfuzz.search.fuzzer import Fuzzer
from policyfuzz.search.portfolio import SAMPLES, PortfolioSearch
from policyfuzz.search.strategies import make_fuzzer

few_examples = settings(max_examples=12, deadline=None, derandomize=True)

SPACE = InputSpace(
    (Real("x", 0.0, 1.0), Angle("a"), Choice("kind", ("one", "two", "three"))),
    constraint=lambda inputs: inputs[:, 0] > 0.1,
)


def solvable(inputs):
    return inputs[:, 0] < 0.9


def results(returns, crashed, states=None, margins=None, errors=None):
    made = Executions.of(returns, crashed, states, errors)
    if margins is None:
        return made
    verdicts = Verdicts(made.verdicts.kinds, made.verdicts.steps, np.asarray(margins, float))
    return Executions(made.returns, made.lengths, made.states, verdicts, made.errors)


def simulate(cases, has_margins=True):
    """Episodes of four states; those with x < 0.15 and a small angle crash."""
    x, angle = cases.inputs.T[:2]
    states = np.stack([x[:, None] + 0.1 * np.arange(4), np.sin(angle[:, None] + np.arange(4))], axis=2)
    margins = np.maximum(x - 0.15, np.abs(angle) - 1)
    return results(x + 0.1 * np.cos(angle), margins < 0, states, margins if has_margins else None)


def blind(cases):
    """The same, where the oracle cannot tell how far it was from a crash."""
    return simulate(cases, has_margins=False)


def fuzzer_of(space=SPACE, samples=40, seed=0, radius=DISTINCT_RADIUS):
    judge = solvable if space is SPACE else None
    return Fuzzer(space, judge, PortfolioSearch(samples), seed, radius=radius)


def drive(fuzzer, batches, size=30, run=simulate):
    """Ask and tell in turn; all cases that were asked."""
    asked = [Cases.none(len(fuzzer.space.dimensions))]
    for _ in range(batches):
        asked.append(fuzzer.ask(size))
        fuzzer.tell(asked[-1], run(asked[-1]))
    return Cases.concatenate(asked)


def assert_same(first, second):
    for name in ("inputs", "seeds", "parents", "purposes", "emitters"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def assert_same_corpus(first, second):
    np.testing.assert_array_equal(first.inputs, second.inputs)
    for name in COLUMNS:
        np.testing.assert_array_equal(first.column(name), second.column(name))


def test_cases_are_the_same_when_the_seed_is_and_others_when_it_is_not():
    first, second, third = (drive(fuzzer_of(seed=seed), 12) for seed in (3, 3, 4))
    assert_same(first, second)
    assert (first.inputs[:40] != third.inputs[:40]).any(axis=1).all()


@pytest.mark.parametrize("run", [simulate, blind])
def test_every_asked_case_is_valid_and_solvable(run):
    cases = drive(fuzzer_of(), 20, run=run)
    assert SPACE.is_valid(cases.inputs).all()
    assert solvable(cases.inputs).all()


@few_examples
@given(st.integers(0, 14), st.sampled_from([1, 2, 3]), st.sampled_from([7, 30, 64]), st.booleans())
def test_a_restored_search_continues_identically(batches, window, size, has_margins):
    original, waiting = fuzzer_of(seed=5), []
    novel, descriptors = [np.empty((0, 3))], [np.empty((0, DESCRIPTOR_SIZE))]

    def go_on(fuzzer, in_flight, rounds):
        asked = []
        for _ in range(rounds):
            while len(in_flight) < window and len(cases := fuzzer.ask(size)):
                in_flight.append(cases)
                asked.append(cases)
            oldest = in_flight.pop(0)
            update = fuzzer.tell(oldest, simulate(oldest, has_margins))
            novel.append(oldest.inputs[update.crashed][update.observed.is_novel])
            descriptors.append(update.observed.behaviours.descriptors[update.observed.is_novel])
        return Cases.concatenate(asked)

    if batches:
        go_on(original, waiting, batches)
    restored, in_flight = fuzzer_of(seed=5), deepcopy(waiting)
    crashes = np.concatenate(novel), np.concatenate(descriptors)
    restored.restore(deepcopy(original.state()), deepcopy(original.corpus), *crashes)
    assert_same(go_on(original, waiting, 8), go_on(restored, in_flight, 8))
    assert_same_corpus(original.corpus, restored.corpus)


def test_a_state_with_climbers_of_an_earlier_version_is_continued_with_new_ones():
    original, restored = fuzzer_of(), fuzzer_of()
    drive(original, 6)
    state = {name: array for name, array in original.state().items() if not name.startswith("climbers.")}
    state["climbers.entries"] = np.zeros(16, np.int64)
    restored.restore(state, deepcopy(original.corpus), np.empty((0, 3)), np.empty((0, DESCRIPTOR_SIZE)))
    assert len(drive(restored, 3)) == 90


def test_a_state_of_a_version_in_which_no_climber_waited_keeps_its_climbers():
    original, restored = fuzzer_of(), fuzzer_of()
    drive(original, 6)
    state = {name: array for name, array in original.state().items() if name != "climbers.waiting"}
    restored.restore(state, deepcopy(original.corpus), np.empty((0, 3)), np.empty((0, DESCRIPTOR_SIZE)))
    np.testing.assert_array_equal(restored.state()["climbers.means"], state["climbers.means"])
    np.testing.assert_array_equal(restored.state()["climbers.climbed"], state["climbers.climbed"])
    assert len(drive(restored, 3)) == 90


def test_walkers_get_no_more_while_all_climbers_wait():
    fuzzer, in_flight = fuzzer_of(), []
    drive(fuzzer, 40)
    while len(fuzzer.algorithm._climbers.idle):
        in_flight.append(fuzzer.ask(200))
    lineages = fuzzer.algorithm._archive.lineages(fuzzer.corpus)
    emitters = np.concatenate([emitters_of(fuzzer.ask(1000)) for _ in range(6)])
    assert not (emitters == Emitter.CLIMB).any()
    assert np.isin(emitters, WALKERS).mean() < 0.8 * lineages / (lineages + 4) + 0.05
    assert np.isin(emitters, SEEKERS).mean() > 0.8 * 0.35 - 0.05


def test_stored_energies_are_those_of_the_corpus_at_every_batch():
    fuzzer, stored, in_flight = fuzzer_of(), {}, []
    for _ in range(30):
        while len(in_flight) < 2 and len(cases := fuzzer.ask(30)):
            in_flight.append(cases)
        oldest = in_flight.pop(0)
        update = fuzzer.tell(oldest, simulate(oldest))
        assert not set(update.measured) & set(update.entries), "new entries are stored anyway"
        assert set(update.measured) <= set(stored)
        for entry in (*update.entries, *update.measured):
            stored[entry] = fuzzer.corpus.column("energy")[entry]
        np.testing.assert_array_equal([stored[n] for n in range(len(stored))], fuzzer.corpus.column("energy"))


def test_energy_falls_with_children_and_rises_with_new_findings():
    fuzzer, walked, rewarded = fuzzer_of(), 0, 0
    drive(fuzzer, 2)
    for _ in range(8):
        before = fuzzer.corpus.column("energy").copy()
        cases = fuzzer.ask(64)
        tired = fuzzer.corpus.column("energy").copy()
        is_child = (cases.emitters > Emitter.CLIMB) & (cases.emitters < len(Emitter))
        is_walked = np.bincount(cases.parents[is_child], minlength=len(before))[: len(before)] > 0
        assert (tired[is_walked] < before[is_walked]).all()
        executions = simulate(cases)
        update = fuzzer.tell(cases, executions)
        is_new = np.isin(np.arange(len(cases)), update.kept) & executions.crashed
        praised = np.unique(cases.parents[is_new & (cases.parents != NO_PARENT)])
        after = fuzzer.corpus.column("energy")[: len(tired)]
        assert (after[praised] > tired[praised]).all()
        assert (np.delete(after, praised) == np.delete(tired, praised)).all()
        assert (after <= 1).all()
        walked, rewarded = walked + is_walked.sum(), rewarded + len(praised)
    assert walked > 20
    assert rewarded, "no batch shows what a finding does"


def test_a_thousand_new_findings_of_one_parent_are_taken():
    space = InputSpace(tuple(Real(f"x{place}", 0, 1) for place in range(30)))
    fuzzer = fuzzer_of(space, samples=256)
    drive(fuzzer, 1, 256, run=lambda cases: results(cases.inputs[:, 0], cases.inputs[:, 0] < -1))
    parents = np.zeros(1000, np.int64)
    cases = Cases.of(
        Purpose.MUTANT, space.sample(np.random.default_rng(0), 1000), parents.astype(np.uint64), parents
    )
    errors = dict.fromkeys(range(1000), "no")  # what such an episode did is not known: all of them are new
    update = fuzzer.tell(
        cases.by(np.full(1000, 2)), results(np.zeros(1000), np.ones(1000, bool), errors=errors)
    )
    assert len(update.entries) == 1000
    assert fuzzer.corpus.column("energy")[0] == 1.0


def test_findings_are_kept_when_they_are_new_and_not_twice():
    space = InputSpace((Real("x", 0, 1), Angle("a"), Real("y", 0, 1)))
    fuzzer = fuzzer_of(space)
    drive(
        fuzzer,
        30,
        run=lambda cases: results(cases.inputs[:, 0], cases.inputs[:, 0] < 0.4, cases.inputs[:, None]),
    )
    corpus = fuzzer.corpus
    findings = space.to_unit(corpus.inputs[corpus.column("is_crash")])
    assert len(findings) > 20
    apart = np.abs(findings[:, None] - findings[None])
    apart[..., 1] = np.minimum(apart[..., 1], 1 - apart[..., 1])
    distances = np.sqrt((apart**2).mean(axis=2)) + np.eye(len(findings))
    assert distances.min() >= DISTINCT_RADIUS / 2


def test_noise_is_rewarded_once_it_holds_and_not_when_it_crashes():
    fuzzer = fuzzer_of()
    fuzzer.is_noisy = True
    cases = drive(fuzzer, 12)
    crashed = cases[simulate(cases).crashed & (cases.parents != NO_PARENT)]
    assert len(crashed) > 10
    rewards = fuzzer.state()["bandit.rewards"]
    assert not rewards.any()
    before = fuzzer.corpus.column("energy").copy()
    changed = fuzzer.credit(crashed[:1])
    assert changed.tolist() == crashed.parents[:1].tolist()
    after = fuzzer.corpus.column("energy")
    assert after[changed[0]] > before[changed[0]]
    np.testing.assert_array_equal(np.delete(after, changed), np.delete(before, changed))
    assert fuzzer.state()["bandit.rewards"].sum() == 1


def test_children_get_fresh_case_seeds_where_the_seed_makes_noise():
    fuzzer = fuzzer_of()
    fuzzer.is_noisy = True
    cases = drive(fuzzer, 20)
    children = cases[(cases.purposes == Purpose.MUTANT) & (cases.emitters < len(Emitter))]
    assert len(children) > 50
    assert (children.seeds != fuzzer.corpus.column("case_seed")[children.parents]).all()


def test_search_finds_more_crashes_than_it_samples():
    cases = drive(fuzzer_of(), 40)
    crashed, is_drawn = simulate(cases).crashed, cases.parents == NO_PARENT
    assert crashed[~is_drawn].mean() > 3 * crashed[is_drawn].mean()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda cases, made, odd: results(
            made.returns, made.crashed, errors=dict.fromkeys(odd.tolist(), "no")
        ),
        lambda cases, made, odd: results(
            np.where(np.isin(np.arange(len(cases)), odd), np.nan, made.returns),
            made.crashed,
            made.states,
            made.verdicts.margins,
        ),
        lambda cases, made, odd: results(
            np.where(np.isin(np.arange(len(cases)), odd), -np.inf, made.returns), made.crashed, made.states
        ),
    ],
    ids=["errors", "NaN return", "infinite return"],
)
def test_nothing_is_learnt_from_episodes_without_a_result(spoil):
    def run(cases):
        return spoil(cases, simulate(cases), np.flatnonzero(cases.inputs[:, 0] < 0.3))

    fuzzer = fuzzer_of()
    drive(fuzzer, 20, run=run)
    safe = ~fuzzer.corpus.column("is_crash")
    assert fuzzer.corpus.inputs[safe, 0].min() >= 0.3
    assert np.isfinite(fuzzer.corpus.column("return")[safe]).all()
    assert safe.sum() > 20


@pytest.mark.parametrize("has_error", [True, False], ids=["error", "NaN return"])
def test_findings_without_a_result_are_walked_through_like_others(has_error):
    """As with an oracle that looks for exceptions or NaN."""
    space = InputSpace((Real("a", 0, 1), Real("b", 0, 1)))

    def run(cases):
        crashed = np.abs(cases.inputs - 0.4).max(axis=1) < 0.05
        returns = np.where(crashed & (not has_error), np.nan, cases.inputs[:, 0])
        errors = dict.fromkeys(np.flatnonzero(crashed).tolist(), "boom") if has_error else None
        return Executions.of(returns, crashed, cases.inputs[:, None], errors)

    crashed = run(drive(fuzzer_of(space), 30, 64, run)).crashed
    assert crashed.any()
    assert crashed[crashed.argmax() :].mean() > 0.05  # 0.01 of random ones


def test_a_batch_of_nothing_but_failures_without_states_is_learnt_from():
    """As with an oracle that looks for exceptions, if every reset of a batch raises."""
    fuzzer = fuzzer_of(radius=0.001)
    drive(fuzzer, 6)
    cases = fuzzer.ask(30)
    lost = results(
        np.zeros(len(cases)), [True] * len(cases), None, None, dict.fromkeys(range(len(cases)), "no")
    )
    update = fuzzer.tell(cases, replace(lost, states=np.zeros((len(cases), 1, 0))))
    assert len(update.kept) > 20
    assert fuzzer.corpus.column("is_crash")[update.entries].all()
    assert len(fuzzer.ask(30)) == 30


def test_discrete_inputs_hardly_repeat_with_the_same_seed():
    space = InputSpace(tuple(Choice(f"c{i}", tuple("abcde")) for i in range(4)))

    def run(cases):
        values = cases.inputs.sum(axis=1) - 2.0
        return results(values, values < 0, cases.inputs[:, None], values)

    cases = drive(fuzzer_of(space), 40, 64, run)
    crashed = cases[run(cases).crashed]
    keys = {(row.tobytes(), int(seed)) for row, seed in zip(crashed.inputs, crashed.seeds, strict=True)}
    assert len(crashed) > 100
    assert len(keys) > 0.95 * len(crashed)


def test_of_many_choices_those_that_decide_are_made_more_often_with_other_seeds():
    """A course of obstacles: the seed draws their sizes, and few of them are ever reached."""
    space = InputSpace(tuple(Choice(f"obstacle{number}", ("stump", "stairs", "pit")) for number in range(12)))

    def run(cases):
        luck = np.array([np.random.default_rng([int(seed), 5]).random() for seed in cases.seeds])
        margins = luck - 0.015 * (cases.inputs[:, :3] == 0).sum(axis=1)
        return results(margins, margins < 0, cases.inputs[:, None], margins)

    fuzzer = fuzzer_of(space, samples=200)
    cases = drive(fuzzer, 60, 64, run)
    children = cases[(cases.purposes == Purpose.MUTANT) & (cases.emitters < len(Emitter))]
    assert (children.seeds != fuzzer.corpus.column("case_seed")[children.parents]).all()
    drawn = cases[cases.parents == NO_PARENT]
    decisive, usual = ((some.inputs[:, :3] == 0).mean() for some in (children, drawn))
    assert decisive > 1.5 * usual


def test_repeats_of_an_outcome_are_no_parents_and_earn_nothing():
    fuzzer, twin = fuzzer_of(), fuzzer_of()
    drive(fuzzer, 3)
    drive(twin, 3)
    cases, asked = fuzzer.ask(30), twin.ask(30)
    all_crash = results(np.zeros(30), np.ones(30, bool), np.zeros((30, 4, 2)), -np.ones(30))
    fresh = fuzzer.tell(cases, all_crash)
    repeated = twin.tell(asked, all_crash, np.arange(30))
    assert len(fresh.entries) > 10
    assert fuzzer.state()["bandit.rewards"].sum() > twin.state()["bandit.rewards"].sum()
    assert not twin.corpus.column("is_crash")[repeated.entries].any()


def test_search_begins_properly_after_a_batch_in_which_all_failed():
    fuzzer = fuzzer_of(samples=40)
    failed = drive(
        fuzzer,
        2,
        20,
        run=lambda cases: results(
            np.zeros(len(cases)), [False] * len(cases), None, None, dict.fromkeys(range(len(cases)), "no")
        ),
    )
    assert (failed.purposes == Purpose.SAMPLE).all()
    assert len(fuzzer.corpus) == 0
    cases = drive(fuzzer, 30)
    assert simulate(cases).crashed.mean() > 0.1, "the oracle's margins lead it"


def test_sampling_goes_on_when_every_episode_fails():
    def fail(cases):
        nothing = np.zeros(len(cases))
        return results(nothing, nothing > 0, errors=dict.fromkeys(range(len(cases)), "no"))

    cases = drive(fuzzer_of(samples=40), 10, run=fail)
    assert (cases.purposes == Purpose.SAMPLE).all()
    assert len(cases) == 300 - 20


def test_everything_that_crashes_is_explored_at_random():
    fuzzer = fuzzer_of(samples=40)
    cases = drive(fuzzer, 10, run=lambda cases: results(cases.inputs[:, 0], cases.inputs[:, 0] >= 0))
    assert set(cases.purposes[40:].tolist()) == {Purpose.EXPLORE}
    assert fuzzer.corpus.column("is_crash").all()


def test_search_climbs_and_jumps_when_nothing_ever_crashes():
    fuzzer = fuzzer_of(samples=40)
    cases = drive(fuzzer, 20, run=lambda cases: results(cases.inputs[:, 0], cases.inputs[:, 0] < 0))
    assert not fuzzer.corpus.column("is_crash").any()
    mutants = cases[cases.purposes == Purpose.MUTANT]
    assert len(mutants) > 300
    assert np.median(mutants.inputs[:, 0]) < 0.2, "towards low returns"


def test_jumps_and_climbs_leave_lineages_with_a_finding_to_the_walkers():
    fuzzer = fuzzer_of(samples=256)
    drive(fuzzer, 6, 256)
    corpus, jumps = fuzzer.corpus, 0
    for _ in range(30):
        before = len(fuzzer.algorithm._climbers.climbed)
        findings = fuzzer.algorithm._archive.crashed
        crashed = set(corpus.column("root")[findings].tolist())
        cases = drive(fuzzer, 1, 256)
        parents = cases.parents[cases.emitters == Emitter.JUMP]
        assert not crashed & set(corpus.column("root")[parents].tolist())
        assert not crashed & set(fuzzer.algorithm._climbers.climbed[before:].tolist())
        jumps += len(parents) * bool(crashed)
    climbed = fuzzer.algorithm._climbers.climbed
    assert len(np.unique(climbed)) == len(climbed) > 1, "nobody climbs from the same draw twice"
    assert jumps


def test_walkers_leave_the_findings_that_they_know(monkeypatch):
    def share_beyond(candidates):
        """Of the children of walkers, those that are near no known finding when they are proposed."""
        monkeypatch.setattr(emitters, "_CANDIDATES", dict.fromkeys(emitters.WALKERS, candidates))
        beyond = []
        for seed in range(4):
            fuzzer = fuzzer_of(samples=200, seed=seed)
            for _ in range(20):
                cases = fuzzer.ask(64)
                walkers = np.isin(cases.emitters, emitters.WALKERS) & (cases.purposes == Purpose.MUTANT)
                unit = SPACE.to_unit(cases.inputs[walkers])
                beyond += fuzzer.algorithm._walked_for(fuzzer._context).is_free(unit).tolist()
                fuzzer.tell(cases, simulate(cases))
        assert len(beyond) > 400
        return np.mean(beyond)

    assert share_beyond(8) > 1.3 * share_beyond(1)


def test_screened_draws_lie_beside_their_parents_and_crash_more_often_than_others():
    fuzzer = fuzzer_of(samples=200, radius=0.005)  # so small that much of the region stays unknown
    cases = drive(fuzzer, 60, 64)
    screened = cases[cases.emitters == Emitter.SCREEN]
    assert (screened.purposes == Purpose.MUTANT).all()
    assert (screened.parents != NO_PARENT).all(), "a draw that was chosen is no fair draw"
    parents = fuzzer.corpus.inputs[screened.parents]
    assert np.median(np.abs(screened.inputs - parents)[:, 0]) < 0.1
    drawn = cases[cases.parents == NO_PARENT]
    crashed, usually = (simulate(some).crashed.mean() for some in (screened, drawn))
    assert len(screened) > 50
    assert crashed > 2 * usually


def test_import_has_no_parent_and_teaches_the_bandit_nothing():
    fuzzer, twin = fuzzer_of(), fuzzer_of()
    drive(fuzzer, 3)
    drive(twin, 3)
    rng, asked = np.random.default_rng(9), fuzzer.ask(30)
    twin.tell(twin.ask(30), simulate(asked))
    inputs = np.column_stack([rng.uniform(0.11, 0.15, 16), rng.uniform(-1, 1, 16), np.full(16, 2.0)])
    others = Cases.of(Purpose.IMPORT, inputs, np.arange(16, dtype=np.uint64), np.full(16, 7, np.int64))
    cases = Cases.concatenate([asked, others])
    update = fuzzer.tell(cases, simulate(cases))
    assert set(range(30, 46)) <= set(update.crashed.tolist())
    entries = update.entries[update.kept >= len(asked)]
    assert len(entries)
    assert (fuzzer.corpus.column("parent")[entries] == NO_PARENT).all()
    assert fuzzer.corpus.column("is_crash")[entries].all()
    for name in ("bandit.trials", "bandit.rewards"):
        np.testing.assert_array_equal(fuzzer.state()[name], twin.state()[name])
    later = drive(fuzzer, 12)
    assert set(later.parents.tolist()) & set(entries.tolist()), "it walks on from there"


@pytest.mark.parametrize(
    "space",
    [
        InputSpace((Choice("kind", ("one", "two")),)),
        InputSpace((Choice("only", ("one",)),)),
        InputSpace((Integer("same", 3, 3),)),
        InputSpace((Seed("seed"),)),
        InputSpace((Integer("level", 0, 9), Choice("kind", ("one", "two")), Seed("seed", 0, 2**53))),
        InputSpace(tuple(Real(f"x{place}", 0, 1) for place in range(120))),
    ],
    ids=["two options", "one option", "one value", "a seed", "whole numbers", "120 dimensions"],
)
@pytest.mark.parametrize("limit", [-1.0, 0.3, 2.0], ids=["nothing crashes", "some do", "all do"])
def test_search_works_in_spaces_of_any_kind(space, limit):
    def run(cases):
        place = space.to_unit(cases.inputs)[:, 0]
        return results(place, place < limit, cases.inputs[:, None])

    cases = drive(fuzzer_of(space, samples=70), 12, run=run)
    assert len(cases) > 250
    assert space.is_valid(cases.inputs).all()


@pytest.mark.parametrize("width", [0, 1])
def test_search_works_without_states(width):
    def run(cases):
        made = simulate(cases)
        return Executions(made.returns, np.ones_like(made.lengths), made.states[:, :1, :width], made.verdicts)

    assert simulate(drive(fuzzer_of(), 30, run=run)).crashed.mean() > 0.1


def test_children_get_fresh_case_seeds_now_and_then():
    fuzzer = fuzzer_of()
    cases = drive(fuzzer, 60)
    children = cases[cases.purposes == Purpose.MUTANT]
    has_own = children.seeds != fuzzer.corpus.column("case_seed")[children.parents]
    assert 0.02 < has_own.mean() < 0.12
    climbing = children.emitters >= FIRST_CLIMBER
    assert 0.02 < climbing.mean() < 0.9
    assert not has_own[climbing].any(), "steps of climbers are due to the change alone"


def test_random_cases_are_a_fifth_and_draws_of_the_nominal_distribution():
    space = InputSpace((Real("x", 0, 1),), sampler=lambda rng, count: rng.beta(2, 5, (count, 1)))
    fuzzer = fuzzer_of(space, samples=200)
    cases = drive(fuzzer, 120, 64, run=lambda cases: results(cases.inputs[:, 0], cases.inputs[:, 0] < 0.02))
    drawn = np.isin(cases.purposes, [Purpose.SAMPLE, Purpose.EXPLORE])
    np.testing.assert_array_equal(drawn, cases.parents == NO_PARENT)
    assert kstest(cases.inputs[drawn, 0], "beta", (2, 5)).pvalue > 1e-3
    later = cases.purposes[200:]
    explored = int((later == Purpose.EXPLORE).sum())
    assert binomtest(explored, len(later), 0.2).pvalue > 1e-3
    assert len(np.unique(cases.seeds[drawn])) == drawn.sum()


def test_batches_grow_with_what_was_learnt():
    fuzzer = fuzzer_of(samples=100)
    sizes = [len(drive(fuzzer, 1, size=512)) for _ in range(60)]
    assert sizes[0] == 100
    assert sizes[1] == 64
    assert sizes[1:] == sorted(sizes[1:])
    assert 64 < sizes[-1] <= 512
    assert len(fuzzer.ask(10)) == 10, "never more than was asked for"


@few_examples
@given(st.lists(st.integers(1, 200), min_size=1, max_size=15))
def test_no_more_is_asked_than_was_wanted_and_something_once_warm(sizes):
    fuzzer = fuzzer_of(samples=25)
    for size in sizes:
        cases = fuzzer.ask(size)
        assert 0 < len(cases) <= size
        fuzzer.tell(cases, simulate(cases))


@pytest.mark.parametrize(("wanted", "expected"), [(10, 10), (100_000, SAMPLES)])
def test_strategy_samples_no_more_than_it_needs(wanted, expected):
    assert make_fuzzer("portfolio", SPACE, SearchSettings(samples=wanted)).algorithm.samples == expected
