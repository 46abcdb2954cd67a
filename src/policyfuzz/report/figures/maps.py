"""Findings and corpus as points on a plane: what they are (inputs), and what they did (behaviours).

The plane is that along which the points vary most (principal component analysis), or the two dimensions
themselves where there are only two.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.report.figures.sample import FindingSample, sample_corpus
from policyfuzz.report.unit_inputs import unit_share
from policyfuzz.store.reader import CampaignReader

INPUTS, BEHAVIOURS = "inputs", "behaviours"
#: Seeds of the corpus that are shown at most.
_MOST_SEEDS = 4000
#: Names of dimensions that an axis tells.
_NAMES = 3
#: A dimension with less weight than this in an axis is not named.
_SMALLEST_WEIGHT = 0.2


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a map."""

    label: str
    share: float  #: of the variance that lies along it; NaN if it is a dimension itself


@dataclass(frozen=True, slots=True)
class PointMap:
    """Points of findings and of the corpus."""

    what: str  #: INPUTS or BEHAVIOURS
    axes: tuple[Axis, Axis]
    numbers: tuple[int, ...]  #: of the findings
    modes: tuple[int, ...]  #: their failure modes; 0: not known
    x: tuple[float, ...]
    y: tuple[float, ...]
    findings: int  #: confirmed ones, of which these are some
    corpus_x: tuple[float, ...] = ()
    corpus_y: tuple[float, ...] = ()
    corpus: int = 0  #: seeds, of which these are some


def input_map(campaign: CampaignReader, sample: FindingSample) -> PointMap:
    """Where findings and corpus lie among the inputs, in the unit cube; its seeds are left out."""
    seeds, total = sample_corpus(campaign, _MOST_SEEDS)
    points = np.concatenate([sample.inputs, seeds])
    shown = [place for place, one in enumerate(campaign.dimensions) if one["kind"] != "seed"]
    dimensions = [campaign.dimensions[place] for place in shown]
    flat, axes = _plane_of_inputs(dimensions, points[:, shown])
    found, corpus = flat[: len(sample.numbers)], flat[len(sample.numbers) :]
    return PointMap(
        INPUTS,
        axes,
        *_finding_columns(sample, found),
        findings=sample.total,
        corpus_x=_column(corpus, 0),
        corpus_y=_column(corpus, 1),
        corpus=total,
    )


def behaviour_map(sample: FindingSample) -> PointMap | None:
    """Where the findings lie by what their episodes did; None if no behaviour was recorded."""
    known = ~np.isnan(sample.behaviours).any(axis=1) & (sample.behaviours.shape[1] > 0)
    if not known.any():
        return None
    flat, _, shares = _principal(sample.behaviours[known])
    axes = (
        Axis(f"behaviour, {_share_text(shares[0])}", shares[0]),
        Axis(f"behaviour, {_share_text(shares[1])}", shares[1]),
    )
    return PointMap(
        BEHAVIOURS,
        axes,
        tuple(sample.numbers[known].tolist()),
        tuple(sample.modes[known].tolist()),
        _column(flat, 0),
        _column(flat, 1),
        sample.total,
    )


def _finding_columns(
    sample: FindingSample, flat: NDArray[np.float64]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
    return (
        tuple(sample.numbers.tolist()),
        tuple(sample.modes.tolist()),
        _column(flat, 0),
        _column(flat, 1),
    )


def _column(flat: NDArray[np.float64], place: int) -> tuple[float, ...]:
    return tuple(flat[:, place].tolist())


def _plane_of_inputs(
    dimensions: Sequence[Mapping[str, Any]], points: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[Axis, Axis]]:
    if len(dimensions) <= 2:
        labels = [_with_unit(one) for one in dimensions] + [""] * (2 - len(dimensions))
        flat = np.zeros((len(points), 2))
        flat[:, : len(dimensions)] = points
        return flat, (Axis(labels[0], math.nan), Axis(labels[1], math.nan))
    # an angle is cut open: as a circle it would be the plane of nearly every map
    columns = [unit_share(one, values) for one, values in zip(dimensions, points.T, strict=True)]
    flat, weights, shares = _principal(np.stack(columns, axis=1))
    names = [str(one["name"]) for one in dimensions]
    first, second = (
        Axis(f"{_named(names, weights[place])}, {_share_text(shares[place])}", shares[place])
        for place in (0, 1)
    )
    return flat, (first, second)


def _principal(
    points: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[float, float]]:
    """(n, 2) `points` (n, d) on their first two principal axes, the axes (2, d), and their shares."""
    scale = np.abs(points).max(initial=0.0) or 1.0  # squares of large numbers overflow
    centred = points / scale
    centred = centred - (centred.mean(axis=0) if len(points) else 0.0)
    variances, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, ::-1].T[:2]
    if len(axes) < 2:
        axes = np.vstack([axes, np.zeros((2 - len(axes), points.shape[1]))])
    # which way an axis points is arbitrary: its largest weight is positive
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])
    axes = axes * np.where(signs == 0, 1.0, signs)[:, None]
    total = float(variances.sum())
    shares = [*(variances[::-1][:2] / total if total > 0 else np.zeros(len(variances[:2]))).tolist(), 0.0]
    return centred @ axes.T * scale, axes, (max(shares[0], 0.0), max(shares[1], 0.0))


def _named(names: Sequence[str], weights: NDArray[np.float64]) -> str:
    """The dimensions that weigh most in an axis."""
    largest = np.argsort(-np.abs(weights), kind="stable")[:_NAMES]
    named = [names[place] for place in largest if abs(weights[place]) >= _SMALLEST_WEIGHT]
    return ", ".join(named) or names[largest[0]]


def _share_text(share: float) -> str:
    return f"{share:.0%} of the variance"


def _with_unit(dimension: Mapping[str, Any]) -> str:
    return f"{dimension['name']} [{dimension['unit']}]" if dimension["unit"] else str(dimension["name"])
