"""Fits detectors: Mean-Shift clusters, logistic regression, boosted trees, and a density without labels."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz.analysis.monitor_episodes import Episodes
from policyfuzz.core import extras
from policyfuzz.core.settings import DensitySettings
from policyfuzz.density.sequence import SequenceDensity
from policyfuzz.monitors.detectors import Clusters, Detector, Linear, Transitions, Trees

MEAN_SHIFT, LOGISTIC, BOOSTING, DENSITY = "mean-shift", "logistic", "boosting", "density"
METHODS = (MEAN_SHIFT, LOGISTIC, BOOSTING, DENSITY)
#: Frames of each kind (before crashes, of near-misses, of nominal episodes) that are fitted to, at most.
_FRAMES = 4000
#: Coordinates in which clusters and the density live, at most, and frames that clusters are made of.
_AXES, _CLUSTERED = 12, 600
#: Of Mean-Shift: the share of the points that a bandwidth reaches, and points that climb to the centres.
_REACH, _MOST_CLUSTERS = 0.05, 100
#: Of boosting; more or deeper trees cost time at every step of the policy.
_TREES, _DEPTH, _RATE = 80, 3, 0.15
#: Sequences that the density learns at a time.
_LEARNT_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Examples:
    """Episodes that a detector is fitted to."""

    crashes: Episodes
    near_misses: Episodes
    nominal: Episodes
    window: (
        int  #: decisions this many steps before a crash, or fewer, are abnormal; earlier ones are left out
    )


@dataclass(frozen=True, slots=True)
class _Frames:
    """Labelled rows."""

    rows: NDArray[np.float64]  #: (n, k)
    is_abnormal: NDArray[np.bool_]  #: (n,)
    weights: NDArray[np.float64]  #: (n,) both labels weigh the same, near-misses as nominal, line as line


def fit_detector(method: str, given: str, examples: Examples, rng: np.random.Generator) -> Detector:
    """A detector of this `method` on the input `given` ("observations" or "activations")."""
    if method == DENSITY:
        return _fit_transitions(examples.nominal, given, rng)
    frames = _labelled(examples, given, rng)
    fit = {MEAN_SHIFT: _fit_clusters, LOGISTIC: _fit_linear, BOOSTING: _fit_trees}[method]
    return fit(frames, rng)


def _labelled(examples: Examples, given: str, rng: np.random.Generator) -> _Frames:
    crashes = examples.crashes
    near = crashes.leads <= examples.window
    per_line = _shares(crashes.lineages[crashes.rows[near]])
    parts = [_drawn(crashes.frames[given][near], per_line, 1.0, rng)]
    negatives = [one for one in (examples.near_misses, examples.nominal) if len(one)]
    for episodes in negatives:
        weights = _shares(episodes.rows.astype(np.uint64))
        parts.append(_drawn(episodes.frames[given], weights, 1 / len(negatives), rng))
    labels = [np.full(len(weights), place == 0) for place, (_, weights) in enumerate(parts)]
    weights = np.concatenate([weights for _, weights in parts])
    rows = np.concatenate([rows for rows, _ in parts])
    return _Frames(rows, np.concatenate(labels), weights * len(weights) / weights.sum())


def _shares(names: NDArray[np.uint64]) -> NDArray[np.float64]:
    """(n,) weights with which all names weigh the same; they add up to 1."""
    _, places, counts = np.unique(names, return_inverse=True, return_counts=True)
    return np.asarray(1 / counts[places] / len(counts))


def _drawn(
    rows: NDArray[np.float64], weights: NDArray[np.float64], total: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Some of `rows` with their `weights`, which add up to `total`."""
    chosen = rng.permutation(len(rows))[:_FRAMES]
    return rows[chosen], weights[chosen] * total / weights[chosen].sum()


def _units(
    rows: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(k,) location and spread; the spread of what never changes is infinite, so that it counts nothing."""
    location = np.average(rows, axis=0, weights=weights)
    spread = np.sqrt(np.average((rows - location) ** 2, axis=0, weights=weights))
    is_constant = spread <= 1e-9 * np.maximum(np.abs(location), 1e-9)
    return location, np.where(is_constant, np.inf, spread)


def _fit_linear(frames: _Frames, rng: np.random.Generator) -> Detector:  # noqa: ARG001 - as all of them
    linear_model = extras.load("sklearn.linear_model", "analysis")
    location, spread = _units(frames.rows)
    model = linear_model.LogisticRegression(C=1.0, max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # it need not converge to be a detector: the test says what it is worth
        model.fit((frames.rows - location) / spread, frames.is_abnormal, sample_weight=frames.weights)
    weights = np.asarray(model.coef_[0], np.float64) / spread
    return Linear(weights, np.array([float(model.intercept_[0] - weights @ location)]))


def _fit_trees(frames: _Frames, rng: np.random.Generator) -> Detector:
    ensemble = extras.load("sklearn.ensemble", "analysis")
    model = ensemble.GradientBoostingClassifier(
        n_estimators=_TREES,
        max_depth=_DEPTH,
        learning_rate=_RATE,
        subsample=0.5,
        max_features="sqrt",
        random_state=int(rng.integers(2**31)),
    )
    model.fit(frames.rows, frames.is_abnormal, sample_weight=frames.weights)
    trees = [one.tree_ for one in model.estimators_[:, 0]]
    roots = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])]).astype(np.int64)
    pairs = list(zip(trees, roots[:-1].tolist(), strict=True))

    def children(name: str) -> NDArray[np.int64]:
        return np.concatenate([np.maximum(getattr(tree, name), 0) + root for tree, root in pairs])

    detector = Trees(
        np.array([frames.rows.shape[1]], np.int64),
        roots[:-1],
        np.concatenate([np.maximum(tree.feature, -1) for tree in trees]).astype(np.int64),
        np.concatenate([tree.threshold for tree in trees]).astype(np.float64),
        children("children_left").astype(np.int64),
        children("children_right").astype(np.int64),
        _RATE * np.concatenate([tree.value[:, 0, 0] for tree in trees]).astype(np.float64),
        np.zeros(1),
    )
    first = frames.rows[:1]
    bias = model.decision_function(first) - detector.scores(first, first)
    return replace(detector, bias=np.asarray(bias, np.float64))


def _fit_clusters(frames: _Frames, rng: np.random.Generator) -> Detector:
    location, spread = _units(frames.rows)
    axes = _principal_axes((frames.rows - location) / spread) / spread
    points = (frames.rows - location) @ axes.T
    centres = [
        _mean_shift(points[frames.is_abnormal == label], frames.weights[frames.is_abnormal == label], rng)
        for label in (False, True)
    ]
    return Clusters(location, np.ascontiguousarray(axes), *centres)


def _mean_shift(
    points: NDArray[np.float64], weights: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """(c, p) the centres of clusters of `points` (n, p)."""
    cluster = extras.load("sklearn.cluster", "analysis")
    chosen = rng.choice(len(points), min(len(points), _CLUSTERED), replace=False, p=weights / weights.sum())
    some = points[chosen]
    bandwidth = float(cluster.estimate_bandwidth(some, quantile=_REACH)) if len(some) > 1 else 0.0
    if not bandwidth > 0:
        return some[:1]
    found = cluster.MeanShift(bandwidth=bandwidth, seeds=some[:_MOST_CLUSTERS], max_iter=50)
    return np.ascontiguousarray(found.fit(some).cluster_centers_, np.float64)


def _principal_axes(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(p, k) directions in which `rows` (n, k), of mean zero, vary most; all if there are few."""
    if rows.shape[1] <= _AXES:
        return np.eye(rows.shape[1])
    _, vectors = np.linalg.eigh(rows.T @ rows)
    return np.asarray(vectors[:, : -_AXES - 1 : -1].T)


def _fit_transitions(nominal: Episodes, given: str, rng: np.random.Generator) -> Detector:
    rows = nominal.frames[given]
    location, spread = _units(rows)
    chosen = rng.permutation(len(rows))[: 4 * _FRAMES]
    axes = np.ascontiguousarray(_principal_axes((rows[chosen] - location) / spread) / spread)
    points = (rows - location) @ axes.T
    lengths = np.diff(nominal.starts)
    sequences = np.zeros((len(nominal), int(lengths.max()), points.shape[1]))
    sequences[nominal.rows, nominal.steps] = points
    density = SequenceDensity(DensitySettings())
    order = rng.permutation(len(nominal))
    for start in range(0, len(order), _LEARNT_AT_ONCE):
        some = order[start : start + _LEARNT_AT_ONCE]
        density.learn(sequences[some], lengths[some], rng)
    return _transitions_of(density, location, axes)


def _transitions_of(
    density: SequenceDensity, location: NDArray[np.float64], axes: NDArray[np.float64]
) -> Transitions:
    """The conditional density of `density` over points along `axes` (d, k) from `location` (k,)."""
    state = density.state()
    scale, increment_scale, moving = state["scale"], state["increment_scale"], state["moving"]
    dimensions = len(scale)
    mixture = density.pairs.mixture.in_units(np.concatenate([scale, (scale * increment_scale)[moving]]))
    components, both = mixture.log_diagonals.shape
    is_resting = ~np.isin(np.arange(dimensions), moving)
    regularisation = density.settings.regularisation
    cost = 0.5 / (scale * increment_scale) ** 2 / regularisation
    log_rest = -0.5 * is_resting.sum() * np.log(2 * np.pi * regularisation)
    # a point is centred once more by the density itself
    shift = np.concatenate([state["location"], np.zeros(both - dimensions)])
    whiteners = mixture.whiteners.reshape(components, both, both)
    offsets = mixture.offsets.reshape(components, both) + np.einsum("kij,j->ki", whiteners, shift)
    return Transitions(
        location,
        axes,
        1e6 * scale + np.abs(state["location"]),
        np.asarray(moving, np.int64),
        np.where(is_resting, cost, 0.0),
        np.ascontiguousarray(np.tril(whiteners)),
        offsets,
        np.asarray(mixture.log_norms(both), np.float64),
        np.asarray(mixture.log_norms(dimensions), np.float64),
        np.array([log_rest - np.log(increment_scale).sum()]),
    )
