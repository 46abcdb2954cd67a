"""Findings say how far they lie outside of what the environment's own reset draws."""

import numpy as np
import pytest

from policyfuzz import CampaignConfig, CampaignWriter
from policyfuzz.core.inputs import Choice, InputSpace, Real, Seed
from policyfuzz.core.own_reset import OwnRange, OwnReset
from policyfuzz.report.outside import excesses, outside_text, own_crashes_of, own_range_text
from policyfuzz.report.tables import totals
from policyfuzz.store.reader import CampaignReader

SPACE = InputSpace(
    (
        Real("theta", -0.2, 0.2, "rad"),
        Real("x", -2.0, 2.0, "m"),
        Choice("side", ("left", "right")),
        Seed("seed"),
    )
)
OWN = OwnReset(
    {
        "theta": OwnRange(-0.05, 0.05, "rad", 0.4),
        "x": OwnRange(0.0, 0.0, "m", 4.0),
        "side": OwnRange(0.0, 0.0, "", 1.0),
        "seed": OwnRange(0.0, 2.0**31 - 1, "", 2.0**31 - 1),
    },
    resets=200,
)


@pytest.fixture
def campaign(tmp_path):
    """Makes a campaign file about which these facts are known."""

    def make(**about):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        CampaignWriter.create(folder, CampaignConfig("gym:Some-v0"), SPACE, about).close()
        return CampaignReader(folder)

    return make


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ([0.0, 0.0, 0, 7], "inside"),
        ([0.13, 0.0, 0, 7], "theta by 0.08 rad"),
        ([-0.13, 0.0, 0, 7], "theta by 0.08 rad"),
        ([0.06, 1.5, 0, 7], "x by 1.5 m, 1 more"),
        ([0.0, 0.0, 1, 7], "side"),
    ],
)
def test_the_farthest_dimension_is_named_with_its_unit(campaign, row, text):
    assert outside_text(campaign(own_reset=OWN.to_json()), np.array(row, float)) == text


def test_every_dimension_is_told_with_its_own_range(campaign):
    file = campaign(own_reset=OWN.to_json())
    assert own_range_text(file, "theta", 0.13) == "own reset: -0.05 to 0.05, outside by 0.08 rad"
    assert own_range_text(file, "theta", 0.01) == "own reset: -0.05 to 0.05"
    assert own_range_text(file, "x", -1.0) == "own reset: 0, outside by 1 m"
    assert own_range_text(file, "side", 0.0) == ""
    assert own_range_text(file, "side", 1.0) == "the environment's own reset never draws this"
    assert own_range_text(file, "seed", 5.0) == ""


def test_excesses_have_a_sign_for_programs(campaign):
    found = excesses(campaign(own_reset=OWN.to_json()), np.array([-0.13, 1.5, 0, 0]))
    assert found == {"x": 1.5, "theta": pytest.approx(-0.08)}


@pytest.mark.parametrize("about", [{}, {"own_reset": "damaged"}, {"own_reset": OwnReset().to_json()}])
def test_files_that_do_not_say_are_not_guessed_at(campaign, about):
    file = campaign(**about)
    assert excesses(file, np.zeros(4)) is None
    assert outside_text(file, np.zeros(4)) == ""
    assert own_range_text(file, "theta", 0.1) == ""
    assert own_crashes_of(file) is None


def test_what_is_known_of_some_dimensions_only_is_no_claim_about_the_others(campaign):
    some = OwnReset({"theta": OwnRange(-0.05, 0.05, "rad", 0.4)})
    assert outside_text(campaign(own_reset=some.to_json()), np.zeros(4)) == "inside, where known"


def test_totals_have_the_crashes_from_the_own_reset(campaign):
    file = campaign(own_crashes='{"crashes": 3, "episodes": 50, "draws": 64}')
    assert totals(file, file.progress(), None)["own_reset"] == {"crashes": 3, "episodes": 50}
    damaged = campaign(own_crashes='{"crashes": "many"}')
    assert totals(damaged, damaged.progress(), None)["own_reset"] is None


@pytest.mark.parametrize(("solvability", "is_tested"), [("tested", True), ("not tested", False), ("", False)])
def test_solvable_is_said_only_where_it_was_tested(campaign, solvability, is_tested):
    file = campaign(solvability=solvability)
    assert file.is_solvability_tested == is_tested
    assert totals(file, file.progress(), None)["failure_probability"]["of_solvable"] == is_tested
