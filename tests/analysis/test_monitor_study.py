"""Planted monitors: what the split by lineages is for, and fitting to whole campaigns."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import policyfuzz as pf
from policyfuzz.analysis.monitor_episodes import (
    NONE,
    Lineages,
    MonitorCases,
    crash_cases,
    lineage_name,
    mutant_cases,
    near_misses,
    random_cases,
)
from policyfuzz.analysis.monitor_evaluation import episode_scores, frame_scores, lineage_auc
from policyfuzz.analysis.monitor_fitting import BOOSTING, LOGISTIC, fit_detector
from policyfuzz.analysis.monitor_study import Material, MonitorSettings, fit_monitor_to, held_out_lineages
from policyfuzz.core.errors import MissingExtra, UsageError
from policyfuzz.core.target import Runner
from policyfuzz.monitors.monitor import MonitorError
from policyfuzz.store.reader import CampaignReader
from policyfuzz.targets.registry import load_target
from tests.analysis.monitor_material import made_episodes

TARGET = "ripple:dimensions=3,probability=0.01"
WIDTH, LINES, EACH = 10, 50, 4


def clones(rng, crash_at=None, first=0, **options):
    """Episodes of some lines, each of them around a centre that all of its episodes share."""
    lineages = np.repeat(np.arange(first, first + LINES), EACH)
    centres = np.repeat(rng.normal(size=(LINES, WIDTH)), EACH, axis=0)
    return made_episodes(rng, len(lineages), WIDTH, crash_at, lineages=lineages, centres=centres, **options)


def material(rng, towards=0.0):
    crashes = clones(rng, crash_at=10, towards=towards)
    return Material(crashes, clones(rng, first=LINES), clones(rng, first=2 * LINES), none_left(), 0)


def none_left():
    return MonitorCases(
        np.empty((0, 1)), np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64)
    )


def held_out_auc(found, method, rng):
    held_out = held_out_lineages(found, rng)
    training = found.part(lambda one: ~np.isin(one.lineages, held_out), 10)
    testing = found.part(lambda one: np.isin(one.lineages, held_out), 10)
    detector = fit_detector(method, "observations", training, rng)
    scores = [
        episode_scores(frame_scores(detector, "observations", one), one)
        for one in (testing.crashes, testing.near_misses)
    ]
    return lineage_auc(scores[0], testing.crashes.lineages, scores[1], rng).value


def leaked(episodes, first):
    """The same episodes, as if each were a line of its own."""
    return replace(episodes, lineages=np.arange(first, first + len(episodes), dtype=np.uint64))


@pytest.mark.slow
def test_leaking_lineages_across_the_split_raises_the_auc():
    pytest.importorskip("sklearn")
    honest, leaking = [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        found = material(rng)  # crashes differ from others by nothing but which lines they are
        honest.append(held_out_auc(found, BOOSTING, rng))
        sets = (found.crashes, found.near_misses, found.nominal)
        mixed = [leaked(one, 1000 * place) for place, one in enumerate(sets)]
        leaking.append(
            held_out_auc(
                replace(found, crashes=mixed[0], near_misses=mixed[1], nominal=mixed[2]), BOOSTING, rng
            )
        )
    assert abs(np.mean(honest) - 0.5) < 0.2
    assert np.mean(leaking) > 0.85


def test_real_warnings_survive_the_split():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    assert held_out_auc(material(rng, towards=6.0), LOGISTIC, rng) > 0.9


def test_shuffled_labels_give_one_half():
    pytest.importorskip("sklearn")
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        real = made_episodes(rng, 400, WIDTH, crash_at=10, towards=2.0)
        is_crash = rng.permutation(len(real)) < len(real) // 2  # whichever
        passing = replace(real[~is_crash], crash_steps=np.full(len(real) // 2, NONE))
        shuffled = Material(real[is_crash], passing, passing, none_left(), 0)
        found.append(held_out_auc(shuffled, LOGISTIC, rng))
    assert abs(np.mean(found) - 0.5) < 0.08


def test_no_line_is_on_both_sides():
    rng = np.random.default_rng(0)
    found = material(rng)
    held_out = held_out_lineages(found, rng)
    assert len(np.intersect1d(held_out, np.unique(found.crashes.lineages))) == LINES * 2 // 5
    training = found.part(lambda one: ~np.isin(one.lineages, held_out), 10)
    testing = found.part(lambda one: np.isin(one.lineages, held_out), 10)
    assert not set(training.crashes.lineages) & set(testing.crashes.lineages)
    assert len(training.crashes) + len(testing.crashes) == LINES * EACH


def test_findings_come_in_turn_from_all_lines(run_campaign):
    campaign = run_campaign(TARGET)
    roots = {one.root for one in campaign.findings()}
    cases = crash_cases([campaign], Lineages(), len(roots), np.random.default_rng(0))
    assert set(cases.lineages.tolist()) == {lineage_name(campaign, root) for root in roots}


def test_a_campaign_without_findings_has_no_crashes(run_campaign):
    campaign = run_campaign("ripple:probability=0.000000001", executions=64)
    cases = crash_cases([campaign], Lineages(), 10, np.random.default_rng(0))
    assert len(cases) == 0
    assert cases.inputs.shape == (0, len(campaign.dimensions))


def test_a_finding_in_two_campaigns_joins_their_lines(run_campaign):
    campaign = run_campaign(TARGET)
    rng = np.random.default_rng(0)
    once, twice = (
        crash_cases(some, Lineages.of(some), 10**6, rng) for some in ([campaign], [campaign, campaign])
    )
    assert len(once) == len(twice)  # and counts once
    assert set(once.lineages.tolist()) == set(twice.lineages.tolist())


def test_mutants_of_two_campaigns_count_once(run_campaign):
    campaign = run_campaign(TARGET)
    rng = np.random.default_rng(0)
    once, twice = (
        mutant_cases(some, Lineages.of(some), 10**6, rng) for some in ([campaign], [campaign, campaign])
    )
    assert len(once) == len(twice) > 0


def test_lineages_that_share_episodes_are_united_however_they_are_told():
    lineages = Lineages()
    lineages.unite(1, 3)  # as when the third campaign imported from the first
    lineages.unite(2, 3)  # and from the second
    assert len({lineages.name(one) for one in (1, 2, 3)}) == 1
    assert lineages.name(4) == 4
    for one in (1, 2, 3):
        assert lineages.all_names(np.array([one, 7], np.uint64)).tolist() == [1, 2, 3, 7]


def test_near_misses_pass_and_come_nearer_than_most_nominal_episodes(run_campaign):
    campaign, target = run_campaign(TARGET), load_target(TARGET)
    run, rng = Runner(target), np.random.default_rng(0)
    drawn = random_cases(target, 200, seed=5)
    margins = run(drawn.inputs, drawn.seeds).verdicts.margins
    found = near_misses(target, run, mutant_cases([campaign], Lineages(), 400, rng), margins, 50)
    again = run(found.inputs, found.seeds)
    assert len(found) == 50
    assert not again.crashed.any()
    assert (again.verdicts.margins <= np.quantile(margins, 0.1)).all()


def test_longer_sequences_of_draws_begin_with_shorter_ones():
    target = load_target(TARGET)
    few, many = random_cases(target, 10, seed=3), random_cases(target, 300, seed=3)
    np.testing.assert_array_equal(few.inputs, many.inputs[:10])


@pytest.mark.parametrize(
    "changes", [{"method": "magic"}, {"input": "pictures"}, {"lead": 0}, {"wanted_rate": 1.0}, {"draws": 3}]
)
def test_settings_that_make_no_sense_are_refused(changes):
    with pytest.raises(UsageError):
        MonitorSettings(**changes)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("monitor") / "campaign"
    pf.fuzz(TARGET, max_execs=4000, out=folder, seed=1)
    return folder


@pytest.fixture(scope="module")
def fitted(campaign):
    pytest.importorskip("sklearn")
    return pf.fit_monitor(campaign, draws=1200, episodes=60, lead=1)


@pytest.mark.slow
def test_fit_gives_a_monitor_and_what_it_is_worth(fitted, tmp_path):
    record = fitted.record
    assert record.lineages + record.fitted_lineages >= 10
    assert {one.method for one in record.methods} == {"mean-shift", "logistic", "boosting", "density"}
    assert record.chosen.false_alarms.of > 300
    assert 0 <= record.chosen.leads[0].near_miss.value <= 1
    path = fitted.save(tmp_path / "monitor.npz")
    assert pf.Monitor.load(path).facts == fitted.monitor.facts
    assert (tmp_path / "monitor.npz.fit.json").exists()
    assert "AUC of episodes" in repr(fitted)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_monitor(fitted, campaign):
    again = pf.fit_monitor(campaign, draws=1200, episodes=60, lead=1)
    assert again.record == fitted.record or str(again.record) == str(fitted.record)  # NaN differs from itself
    assert again.monitor.facts == fitted.monitor.facts


@pytest.mark.slow
def test_lines_that_were_fitted_to_are_left_out_of_a_test(fitted, campaign):
    report = pf.evaluate_monitor(fitted.monitor, campaign, draws=300, episodes=60, lead=1)
    assert report.record.lineages == fitted.record.lineages
    assert "left out" in repr(report)


@pytest.mark.slow
def test_near_misses_that_were_fitted_to_are_left_out_of_a_test(fitted, campaign):
    reader = CampaignReader(campaign)
    mutants = mutant_cases([reader], Lineages.of([reader]), 10**6, np.random.default_rng(0))
    everything = np.union1d(mutants.lineages, fitted.monitor.lineages)
    known = everything[:0], fitted.monitor.lineages, everything
    monitors = [replace(fitted.monitor, lineages=names) for names in known]
    tests = [pf.evaluate_monitor(one, campaign, draws=300, episodes=60, lead=1) for one in monitors]
    of_all, of_others, of_none = (one.record.near_misses for one in tests)
    assert of_all > of_others > of_none == 0


def test_a_missing_package_is_told_before_anything_is_run(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)

    def run(_inputs, _seeds):
        raise AssertionError("an episode was run")

    with pytest.raises(MissingExtra):
        fit_monitor_to(load_target(TARGET), [], run, MonitorSettings())


@pytest.mark.slow
def test_a_monitor_of_another_policy_is_refused(fitted, campaign):
    other = replace(fitted.monitor, facts=replace(fitted.monitor.facts, policy_sha256="another"))
    with pytest.raises(MonitorError, match="was fitted to"):
        pf.evaluate_monitor(other, campaign, draws=300)


@pytest.mark.slow
def test_few_lines_get_no_auc_and_how_to_get_more(run_campaign, tmp_path):
    pytest.importorskip("sklearn")
    run_campaign(TARGET, executions=400)
    found = pf.fit_monitor(tmp_path / "campaign", draws=300, episodes=40, lead=1)
    assert found.record.lineages + found.record.fitted_lineages < 10
    assert all(not one.leads and not one.curves for one in found.record.methods)
    assert "no AUC" in repr(found)
    assert "--resume --max-execs" in repr(found)
    assert (found.record.chosen_method, found.record.chosen_input) == ("density", "observations")


@pytest.mark.slow
def test_the_command_line_fits_tests_and_draws(campaign, tmp_path, capsys, monkeypatch):
    pytest.importorskip("sklearn")
    from policyfuzz.cli.main import exit_code

    monkeypatch.chdir(tmp_path)
    options = ["--draws", "400", "--episodes", "40", "--lead", "1"]
    fit = ["monitor", "fit", str(campaign), "-o", "m.npz", "--picture", "m.png", "--method", "logistic"]
    assert exit_code([*fit, *options]) == 0
    assert "logistic, observations" in capsys.readouterr().out
    assert (tmp_path / "m.png").stat().st_size > 10_000
    assert exit_code(["monitor", "test", "m.npz", str(campaign), "--json", *options]) == 0
    assert json.loads(capsys.readouterr().out)["what"] == "test"
    assert exit_code(["monitor", "fit", "nothing", "-o", "m.npz"]) == 2
