from dataclasses import replace

import numpy as np
import pytest

import policyfuzz
from policyfuzz.analysis.activation_map import MapSettings, map_activations, map_points
from policyfuzz.analysis.decisions import record_inside
from policyfuzz.analysis.episode_classes import Points, collect_points
from policyfuzz.analysis.projection import project
from policyfuzz.core.activations import Activations
from policyfuzz.core.errors import CampaignError, MissingExtra, UsageError
from policyfuzz.core.target import Target
from policyfuzz.store.activations_file import CLASSES, CRASH, MUTATED, NEAR_MISS, NORMAL, OBSERVATIONS
from policyfuzz.store.records import Finding
from policyfuzz.targets.registry import load_target

TARGET = "ripple:dimensions=2,probability=0.05"
#: Findings of planted points.
EACH = 60


class ShowsDistance:
    """Flees as the policy of `ripple` does, and shows how far it is from the centre."""

    def __init__(self, policy):
        self._policy = policy

    def begin(self, count):
        self._policy.begin(count)

    def act(self, observations, rows):
        return self._policy.act(observations, rows)

    def activations(self, observations, rows):
        return Activations.of([("distance", np.abs(observations).max(axis=1, keepdims=True))])


def shown(target: Target) -> Target:
    return replace(target, policy=lambda: ShowsDistance(target.policy()))


def planted(shift_of_crashes):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(len(CLASSES)), EACH)
    lineages = np.where(
        classes == CLASSES.index(CRASH), 1000 + np.arange(len(classes)), np.arange(len(classes))
    )
    values = rng.normal(size=(len(classes), 6))
    is_crash = classes == CLASSES.index(CRASH)
    values[is_crash, 0] += shift_of_crashes
    modes = np.where(is_crash, 1 + np.arange(len(classes)) % 2, 0)
    values[modes == 2, 1] += shift_of_crashes
    return Points(classes, lineages, modes, rng.normal(size=(len(classes), 3)), values)


def separation(found, of, positive, negative):
    wanted = of, positive, negative
    return next(one for one in found.separations if (one.of, one.positive, one.negative) == wanted)


def test_planted_crashes_are_told_apart_by_activations_and_not_by_observations():
    found = map_points(planted(15.0), MapSettings("pca"))
    for negative in (NORMAL, MUTATED, NEAR_MISS):
        inside = separation(found, "activations", CRASH, negative)
        assert inside.auc > 0.99
        assert inside.shuffled == pytest.approx(0.5, abs=0.06)
        assert not inside.means_little
        assert separation(found, OBSERVATIONS, CRASH, negative).auc == pytest.approx(0.5, abs=0.2)
    assert separation(found, "activations", MUTATED, NORMAL).auc == pytest.approx(0.5, abs=0.2)


def test_planted_modes_are_told_apart_from_each_other():
    found = map_points(planted(15.0), MapSettings("pca"), mode_words={"1": "left", "2": "right"})
    assert found.mode_purity == 1.0
    assert found.mode_chance == pytest.approx(0.5, abs=0.02)
    modes = [one for one in found.mode_separations if one.of == "activations"]
    assert {(one.mode, one.words) for one in modes} == {(1, "left"), (2, "right")}
    assert all(one.auc > 0.99 and one.findings == EACH // 2 for one in modes)


def test_few_lineages_are_said_to_mean_little():
    points = planted(15.0)
    few = replace(points, lineages=np.where(points.modes > 0, points.modes, points.lineages + 5000))
    found = map_points(few, MapSettings("pca"))
    assert separation(found, "activations", CRASH, NORMAL).means_little
    assert not separation(found, "activations", MUTATED, NORMAL).means_little


@pytest.mark.parametrize("method", ["tsne", "pca", pytest.param("umap", marks=pytest.mark.slow)])
def test_a_plane_is_the_same_for_the_same_seed(method):
    points = planted(15.0).activations[::4]
    with np.errstate(all="ignore"):
        first, _ = project(points, method, 0)
        again, _ = project(points, method, 0)
    assert first.shape == (len(points), 2)
    assert (first == again).all()


def test_principal_directions_explain_what_varies():
    points = np.zeros((50, 3))
    points[:, 0] = np.arange(50)
    places, explained = project(points, "pca", 0)
    assert explained == pytest.approx((1.0, 0.0))
    assert (np.diff(places[:, 0]) > 0).all()


def test_a_method_that_is_missing_names_the_one_that_needs_nothing(monkeypatch):
    import importlib

    real = importlib.import_module

    def without(name, *rest):
        if name.startswith("sklearn"):
            raise ModuleNotFoundError(name=name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingExtra, match="or use the method pca"):
        project(np.zeros((10, 2)), "tsne", 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A campaign, to be read only."""
    made = tmp_path_factory.mktemp("campaigns") / "one"
    policyfuzz.fuzz(TARGET, max_execs=1500, out=made)
    return made


def test_points_of_a_campaign_are_means_of_decisions_at_the_same_steps(folder):
    target = shown(load_target(TARGET))
    campaign = policyfuzz.CampaignReader(folder)
    findings = list(campaign.records(Finding, "findings", "status = 'confirmed' AND crash_step > 3"))[:5]
    points = collect_points(target, findings, [0] * len(findings), 20, window=3, seed=0)
    assert [len(points.rows(name)) for name in (CRASH, NORMAL, MUTATED)] == [5, 20, 20]
    inputs = np.array([one.input for one in findings])
    seeds = np.array([one.case_seed for one in findings], np.uint64)
    inside = record_inside(target, inputs, seeds)
    assert inside.activations is not None
    assert points.activations is not None
    for row, one in enumerate(findings):
        chosen = (
            (inside.episodes == row) & (inside.steps >= one.crash_step - 3) & (inside.steps < one.crash_step)
        )
        assert chosen.sum() == 3
        expected = inside.activations[chosen].astype(np.float64).mean(axis=0)
        assert points.activations[row] == pytest.approx(expected, rel=1e-12)
    assert points.activations[points.rows(CRASH)].max() < np.median(points.activations[points.rows(NORMAL)])


def test_a_policy_without_activations_is_judged_by_observations_and_told_so(folder):
    found = map_activations(policyfuzz.CampaignReader(folder), load_target(TARGET), MapSettings("pca", 40))
    assert found.of == OBSERVATIONS
    assert "activations" in found.why_none
    assert {one.of for one in found.separations} == {OBSERVATIONS}


def test_python_gives_the_record_and_draws(folder, tmp_path):
    found = policyfuzz.activations(folder, out=tmp_path / "a.png", method="pca", episodes=40)
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert (folder / "activations.json").is_file()
    again = policyfuzz.activations(folder, method="pca", episodes=40)
    assert found == again or repr(found) == repr(again)  # NaN differs from itself


def test_a_campaign_without_findings_has_nothing_to_compare(run_campaign):
    empty = run_campaign("ripple:probability=1e-9", "empty", 200, strategy="random")
    with pytest.raises(CampaignError, match="no confirmed findings"):
        map_activations(empty, load_target("ripple:probability=1e-9"), MapSettings("pca"))


def test_settings_without_meaning_are_refused():
    with pytest.raises(UsageError, match="window is 0"):
        MapSettings(window=0)
