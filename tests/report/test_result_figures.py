"""Pictures of coverage and activations, from records alone."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from policyfuzz.report.activations_figure import activations_figure, draw_activations
from policyfuzz.report.coverage_figure import coverage_figure, draw_coverage
from policyfuzz.report.marks import CRASHED, DRAWN, MUTATED, NEAR_MISS, NORMAL, SERIES
from tests.store.test_results_beside import COVERAGE, MAP, covered


def axes_of(figure: Figure):
    return [one for part in [figure, *figure.subfigs] for one in part.axes]


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_panels_of_states_have_equal_axes(count):
    campaigns = tuple(covered(f"{place}", f"{place}") for place in range(count))
    figure = coverage_figure(replace(COVERAGE, campaigns=campaigns))
    panels = figure.subfigs[0].axes
    assert len(panels) == count + 1
    assert len({(one.get_xlim(), one.get_ylim()) for one in panels}) == 1


def test_pictures_label_their_axes():
    figure = coverage_figure(COVERAGE)
    assert all(one.get_xlabel() == "episodes" and one.get_title("left") for one in figure.subfigs[1].axes)
    assert "no unit" in figure.subfigs[0].get_supxlabel()
    assert "no unit" in figure.subfigs[0].get_supylabel()
    assert all("no unit" in one.get_xlabel() for one in activations_figure(MAP).axes)


def test_the_curve_of_random_sampling_reaches_the_last_episode_where_only_some_were_looked_at():
    few = replace(COVERAGE, random=replace(COVERAGE.random, known=20, used=5))
    *_, random = coverage_figure(few).subfigs[1].axes[0].lines
    assert np.asarray(random.get_xdata())[-1] == 20
    assert np.asarray(random.get_ydata())[-1] == few.share(few.random)


def test_a_panel_for_failure_modes_needs_some():
    assert len(activations_figure(MAP).axes) == 2
    assert len(activations_figure(replace(MAP, modes=(0, 0))).axes) == 1


def test_names_that_look_like_formulas_are_drawn_as_they_are(tmp_path):
    odd = "$\\frac{1}{0$ \x1b[31m \ud800".encode("utf-8", "replace").decode()
    draw_coverage(
        replace(COVERAGE, target=odd, axes=(odd, odd), campaigns=(covered(odd, odd),)), tmp_path / "c.png"
    )
    draw_activations(replace(MAP, target=odd, mode_words={"1": odd}), tmp_path / "a.png")
    assert (tmp_path / "c.png").read_bytes()[:4] == (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_no_class_is_told_by_its_colour_alone():
    assert len({one.marker for one in (NORMAL, MUTATED, NEAR_MISS, CRASHED)}) == 4
    assert len({(one.marker, str(one.line)) for one in (*SERIES, DRAWN)}) == len(SERIES) + 1
