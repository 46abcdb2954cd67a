import json
import math
from dataclasses import replace

import pytest

from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.store import activations_file, coverage_file
from policyfuzz.store.activations_file import ActivationMap, Separation, read_activations, write_activations
from policyfuzz.store.coverage_file import (
    RANDOM,
    CampaignCoverage,
    Coverage,
    CoverageCurve,
    Ellipse,
    read_coverage,
    write_coverage,
)


def covered(name="a", group="a", instance="one"):
    curve = CoverageCurve((10, 20), (1, 2), (3, 4), (0.5, 1.5))
    ellipse = Ellipse(0.0, 1.0, 2.0, 1.0, 45.0, 1.0)
    points = (0.0, 1.0), (1.0, 0.0), (0.5,), (0.5,)
    return CampaignCoverage(name, group, instance, 0, 20, 20, 1, 0, curve, (ellipse,), *points)


COVERAGE = Coverage(
    "ripple",
    "flees",
    0,
    20,
    False,
    100,
    0.25,
    0.5,
    4,
    5,
    ("+ x", "+ y"),
    (0.6, 0.3),
    covered(RANDOM, RANDOM, ""),
    (covered(),),
)
MAP = ActivationMap(
    "one",
    "ripple",
    "flees",
    0,
    "tsne",
    "activations",
    "",
    3,
    10,
    2,
    (),
    (0.0, 1.0),
    (0.0, 1.0),
    (0, 3),
    (0, 1),
    {"1": "caught"},
    (Separation("activations", "crash", "normal", 0.9, 0.8, 1.0, math.nan, 2, 1),),
)


def test_a_coverage_comes_back_as_it_was(tmp_path):
    write_coverage(tmp_path, COVERAGE)
    assert read_coverage(tmp_path, "one") == COVERAGE


def test_activations_come_back_as_they_were(tmp_path):
    write_activations(tmp_path, MAP)
    assert repr(read_activations(tmp_path, "one")) == repr(MAP)


def test_results_of_another_campaign_do_not_count(tmp_path):
    write_coverage(tmp_path, COVERAGE)
    write_activations(tmp_path, MAP)
    assert read_coverage(tmp_path, "two") is None
    assert read_activations(tmp_path, "two") is None


def test_without_a_file_nothing_is_known(tmp_path):
    assert read_coverage(tmp_path, "one") is None
    assert read_activations(tmp_path, "one") is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("campaigns",), []),
        (("campaigns", 0, "xs"), [1.0]),
        (("campaigns", 0, "xs"), ["NaN", 1.0]),
        (("campaigns", 0, "curve", "cells"), [1]),
        (("campaigns", 0, "curve", "behaviours"), [1, 99]),
        (("campaigns", 0, "ellipses", 0, "long"), "Infinity"),
        (("reference",), 0),
        (("axes",), ["x"]),
        (("target",), 7),
        (("code",), "rm"),
    ],
)
def test_a_strangers_coverage_is_refused(tmp_path, path, value):
    write_coverage(tmp_path, COVERAGE)
    _change(tmp_path / coverage_file.FILE_NAME, path, value)
    with pytest.raises(CampaignError, match="run policyfuzz coverage again"):
        read_coverage(tmp_path, "one")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("xs",), [0.0]),
        (("ys",), [0.0, "Infinity"]),
        (("classes",), [0, 9]),
        (("method",), "magic"),
        (("separations", 0, "of"), "dreams"),
        (("separations", 0, "positive"), "odd"),
        (("modes",), [0, 0.5]),
    ],
)
def test_a_strangers_activations_are_refused(tmp_path, path, value):
    write_activations(tmp_path, MAP)
    _change(tmp_path / activations_file.FILE_NAME, path, value)
    with pytest.raises(CampaignError, match="run policyfuzz activations again"):
        read_activations(tmp_path, "one")


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / coverage_file.FILE_NAME).symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(UsageError, match="is a link"):
        write_coverage(tmp_path, COVERAGE)
    assert not (tmp_path / "elsewhere.json").exists()


def test_groups_keep_their_order_with_random_sampling_last():
    more = replace(COVERAGE, campaigns=(covered("b0", "b"), covered("a0", "a"), covered("b1", "b")))
    assert [(name, len(some)) for name, some in more.groups.items()] == [("b", 2), ("a", 1), (RANDOM, 1)]


def _change(path, keys, value):
    page = json.loads(path.read_text())
    place = page
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(page))
