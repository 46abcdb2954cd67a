"""Detectors: each against the plain way to compute the same."""

import numpy as np
import pytest

from policyfuzz.analysis.monitor_fitting import (
    BOOSTING,
    DENSITY,
    LOGISTIC,
    MEAN_SHIFT,
    METHODS,
    Examples,
    _transitions_of,
    fit_detector,
)
from policyfuzz.core.settings import DensitySettings
from policyfuzz.density.sequence import SequenceDensity
from policyfuzz.monitors.detectors import Clusters, Linear, Transitions, Trees, arrays_of, detector_of
from tests.analysis.monitor_material import made_episodes

RNG = np.random.default_rng(0)


def examples(width=4):
    crashes = made_episodes(np.random.default_rng(1), 12, width, crash_at=10, towards=2.0)
    passing = made_episodes(np.random.default_rng(2), 12, width)
    return Examples(crashes, passing, passing, window=5)


def stump(**changes):
    arrays = {
        "inputs": np.array([2]),
        "roots": np.array([0]),
        "feature": np.array([1, -1, -1]),
        "threshold": np.array([0.5, 0.0, 0.0]),
        "left": np.array([1, 0, 0]),
        "right": np.array([2, 0, 0]),
        "value": np.array([0.0, -1.0, 1.0]),
        "bias": np.array([0.25]),
    }
    return arrays | changes


def test_linear_is_a_weighted_sum():
    detector = Linear(np.array([1.0, -2.0]), np.array([0.5]))
    rows = np.array([[1.0, 1.0], [0.0, 3.0]])
    np.testing.assert_allclose(detector.scores(rows, rows), [-0.5, -5.5])


def test_clusters_compare_the_nearest_of_both_kinds():
    detector = Clusters(np.zeros(2), np.eye(2), np.array([[0.0, 0.0], [10.0, 0.0]]), np.array([[3.0, 4.0]]))
    rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(detector.scores(rows, rows), [-5.0, 5.0])


def test_trees_go_left_up_to_the_threshold():
    detector = Trees(**stump())
    rows = np.array([[9.0, 0.5], [9.0, 0.6]])
    np.testing.assert_allclose(detector.scores(rows, rows), [-0.75, 1.25])


def test_boosting_scores_as_scikit_learn_does(monkeypatch):
    ensemble = pytest.importorskip("sklearn.ensemble")
    models = []

    class Watched(ensemble.GradientBoostingClassifier):
        def __init__(self, **options):
            super().__init__(**options)
            models.append(self)

    monkeypatch.setattr(ensemble, "GradientBoostingClassifier", Watched)
    detector = fit_detector(BOOSTING, "observations", examples(), np.random.default_rng(0))
    rows = RNG.normal(size=(50, 4))
    np.testing.assert_allclose(detector.scores(rows, rows), models[-1].decision_function(rows), atol=1e-9)


def test_transitions_are_those_of_the_sequence_density():
    density = SequenceDensity(DensitySettings(components=3))
    walks = RNG.normal(size=(40, 8, 3)).cumsum(axis=1)
    walks[:, :, 2] = walks[:, :1, 2]  # a coordinate that rests
    lengths = np.full(40, 8)
    density.learn(walks, lengths, np.random.default_rng(0))
    detector = _transitions_of(density, np.zeros(3), np.eye(3))
    others = RNG.normal(size=(30, 2, 3)).cumsum(axis=1)
    expected = -density.least_log_density(others, np.full(30, 2))
    np.testing.assert_allclose(detector.scores(others[:, 1].copy(), others[:, 0].copy()), expected, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_row_does_not_depend_on_its_batch(method):
    if method != DENSITY:
        pytest.importorskip("sklearn")
    detector = fit_detector(method, "observations", examples(), np.random.default_rng(0))
    rows = RNG.normal(size=(20, 4))
    before = RNG.normal(size=(20, 4))
    alone = [float(detector.scores(rows[i : i + 1], before[i : i + 1])[0]) for i in range(20)]
    np.testing.assert_array_equal(detector.scores(rows, before), alone)
    single = [detector.score(row, previous) for row, previous in zip(rows, before, strict=True)]
    np.testing.assert_array_equal(single, alone)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 41])
def test_all_widths_are_scored_as_by_numpy(width):
    rng = np.random.default_rng(width)
    rows, before = rng.normal(size=(2, 7, width))
    location, axes = rng.normal(size=width), rng.normal(size=(3, width))
    linear = Linear(rng.normal(size=width), rng.normal(size=1))
    np.testing.assert_allclose(linear.scores(rows, rows), rows @ linear.weights + linear.bias[0])
    normal, abnormal = rng.normal(size=(5, 3)), rng.normal(size=(2, 3))
    points = (rows - location) @ axes.T
    near, far = (np.linalg.norm(points[:, None] - one, axis=2).min(axis=1) for one in (normal, abnormal))
    clusters = Clusters(location, axes, normal, abnormal)
    np.testing.assert_allclose(clusters.scores(rows, rows), near - far)
    trees = Trees(**stump(inputs=np.array([width]), feature=np.array([width - 1, -1, -1])))
    np.testing.assert_allclose(trees.scores(rows, rows), np.where(rows[:, -1] <= 0.5, -0.75, 1.25))
    lower = np.tril(rng.normal(size=(2, 6, 6)))
    mixture = {
        "limits": np.full(3, 1e6),
        "moving": np.arange(3),
        "resting": np.zeros(3),
        "whiteners": lower,
        "offsets": rng.normal(size=(2, 6)),
        "log_norms": rng.normal(size=2),
        "marginal_log_norms": rng.normal(size=2),
        "constant": np.zeros(1),
    }
    wide = Transitions(location, axes, **mixture)
    narrow = Transitions(np.zeros(3), np.eye(3), **mixture)
    expected = narrow.scores(points, (before - location) @ axes.T)
    np.testing.assert_allclose(wide.scores(rows, before), expected, rtol=1e-9, atol=1e-9)
    for detector in (linear, clusters, trees):
        single = [detector.score(row, row) for row in rows]
        np.testing.assert_array_equal(single, detector.scores(rows, before))


def test_trees_of_different_depth_are_walked_to_their_leaves():
    deep = {
        "roots": np.array([0, 5]),
        "feature": np.array([0, -1, 1, -1, -1, -1]),
        "threshold": np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        "left": np.array([1, 0, 3, 0, 0, 0]),
        "right": np.array([2, 0, 4, 0, 0, 0]),
        "value": np.array([0.0, 1.0, 0.0, 2.0, 4.0, 100.0]),
    }
    detector = Trees(**stump(**deep))
    rows = np.array([[-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    np.testing.assert_allclose(detector.scores(rows, rows), [101.25, 102.25, 104.25])


@pytest.mark.parametrize("method", METHODS)
def test_what_is_not_a_number_gives_no_score(method):
    if method != DENSITY:
        pytest.importorskip("sklearn")
    detector = fit_detector(method, "observations", examples(), np.random.default_rng(0))
    rows = np.zeros((1, 4))
    rows[0, 2] = np.nan
    assert np.isnan(detector.scores(rows, np.zeros((1, 4)))).all()


@pytest.mark.parametrize("method", [MEAN_SHIFT, LOGISTIC, BOOSTING])
def test_what_comes_before_crashes_scores_higher(method):
    pytest.importorskip("sklearn")
    detector = fit_detector(method, "observations", examples(), np.random.default_rng(0))
    crash, normal = np.full((1, 4), 2.0), np.zeros((1, 4))
    assert detector.scores(crash, crash) > detector.scores(normal, normal)


def test_wide_rows_are_projected():
    detector = fit_detector(DENSITY, "observations", examples(width=40), np.random.default_rng(0))
    assert isinstance(detector, Transitions)
    assert detector.width == 40
    assert len(detector.axes) < 40


def test_a_number_that_never_changes_counts_nothing():
    pytest.importorskip("sklearn")
    some = examples()
    for one in (some.crashes, some.near_misses):
        one.frames["observations"][:, 0] = 7.0
    detector = fit_detector(LOGISTIC, "observations", some, np.random.default_rng(0))
    rows = np.zeros((2, 4))
    rows[1, 0] = 1e6
    scores = detector.scores(rows, rows)
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"left": np.array([0, 0, 0])},  # a circle
        {"right": np.array([9, 0, 0])},
        {"feature": np.array([2, -1, -1])},
        {"roots": np.array([3])},
        {"value": np.array([0.0, np.nan, 1.0])},
        {"threshold": np.array([0.5])},
        {"threshold": np.array([0, 0, 0])},
        {"inputs": np.array([0])},
    ],
)
def test_trees_that_lead_nowhere_are_refused(changes):
    with pytest.raises(ValueError, match=r"expected|does not hold|not finite"):
        detector_of("trees", stump(**changes))


def test_trees_without_an_end_in_sight_are_refused():
    count = 201
    chain = {
        "feature": np.array([0] * (count - 1) + [-1]),
        "threshold": np.zeros(count),
        "left": np.minimum(np.arange(count) + 1, count - 1),
        "right": np.minimum(np.arange(count) + 1, count - 1),
        "value": np.zeros(count),
    }
    with pytest.raises(ValueError, match="at most 64 decisions"):
        detector_of("trees", stump(**chain))


@pytest.mark.parametrize("method", METHODS)
def test_arrays_make_the_same_detector(method):
    if method != DENSITY:
        pytest.importorskip("sklearn")
    detector = fit_detector(method, "observations", examples(), np.random.default_rng(0))
    again = detector_of(*arrays_of(detector))
    rows = RNG.normal(size=(5, 4))
    np.testing.assert_array_equal(detector.scores(rows, rows + 1), again.scores(rows, rows + 1))


def test_arrays_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="expected weights, bias"):
        detector_of("linear", {"weights": np.zeros(2)})
    with pytest.raises(ValueError, match="no detector"):
        detector_of("code", {})
    with pytest.raises(ValueError, match="fit"):
        detector_of(
            "clusters",
            {"location": np.zeros(2), "axes": np.eye(3), "normal": np.eye(3), "abnormal": np.eye(3)},
        )
