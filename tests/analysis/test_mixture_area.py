from dataclasses import replace

import numpy as np
import pytest

from policyfuzz.analysis.mixture_area import area_of, ellipses_of
from policyfuzz.store.coverage_file import Ellipse


def test_twice_the_planted_regions_have_twice_the_area():
    rng = np.random.default_rng(0)
    one = rng.normal(0, 1, (4000, 2))
    two = np.concatenate([one[:2000], one[2000:] + np.array([50.0, 0.0])])
    # mixtures are fitted from random centres
    assert area_of(ellipses_of(two, 0)) == pytest.approx(2 * area_of(ellipses_of(one, 0)), rel=0.25)


def test_overlapping_ellipses_are_counted_once():
    one = Ellipse(0.0, 0.0, 2.0, 1.0, 30.0, 0.5)
    far = replace(one, x=100.0)
    inside = Ellipse(0.0, 0.0, 1.0, 0.5, 30.0, 0.5)
    assert area_of([one]) == pytest.approx(2 * np.pi)
    assert area_of([one, one]) == pytest.approx(2 * np.pi)
    assert area_of([one, inside]) == pytest.approx(2 * np.pi, rel=0.01)
    assert area_of([one, far]) == pytest.approx(4 * np.pi)


def test_ellipses_lie_along_the_points():
    rng = np.random.default_rng(0)
    along = rng.normal(0, 3, 3000)
    points = np.stack([along + rng.normal(0, 0.1, 3000), along], axis=1)
    assert all(abs(one.angle % 180 - 45) < 10 for one in ellipses_of(points, 0) if one.long > 5 * one.short)
    assert any(one.long > 5 * one.short for one in ellipses_of(points, 0))
