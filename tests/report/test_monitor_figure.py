"""The picture and the text of what a monitor is worth."""

from dataclasses import replace

import numpy as np
import pytest

from policyfuzz.report.monitor_figure import monitor_figure
from policyfuzz.report.monitor_text import monitor_lines
from policyfuzz.store.monitor_record import (
    Auc,
    Count,
    CrashWarnings,
    Curve,
    LeadAuc,
    MethodRecord,
    MonitorRecord,
)

WARNED = CrashWarnings(Count(9, 10, 0.5, 1.0), Count(10, 10, 0.7, 1.0), (6, 7, 3), Count(1, 2), (4, -2))


def method(name, given):
    leads = (LeadAuc(5, Auc(0.91, 0.8, 0.95), Auc(0.99, 0.98, 1.0)),)
    curves = (Curve("near-miss", (0.0, 0.2, 1.0), (0.0, 0.9, 1.0)),)
    rates = Count(3, 1000, 0.001, 0.009), Count(5, 1000, 0.002, 0.011), Count(20, 100, 0.1, 0.3)
    return MethodRecord(name, given, 0.9, Auc(0.95), leads, curves, 1.5, *rates, WARNED, WARNED)


RECORD = MonitorRecord(
    "fit", "toy$", "a policy", ("a",), 5, 7, 50, 60, 70, 800, 20, 5, 0.01, "density", "observations",
    (method("logistic", "activations"), method("density", "observations")),
)  # fmt: skip
TOO_FEW = replace(
    RECORD,
    why_no_auc="4 lineages",
    methods=tuple(replace(one, leads=(), curves=()) for one in RECORD.methods),
)


def texts(figure):
    return " ".join(text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text")))


def test_curves_are_labelled_with_method_area_and_units():
    figure = monitor_figure(RECORD)
    said = texts(figure)
    assert "logistic, near-misses (AUC 0.910)" in said
    assert "share of episodes that pass" in said
    assert "steps from the first alarm to the crash" in said
    assert "0.50% false alarms" in said
    assert "50% of 2 findings" in said  # before the point of no return


def test_methods_differ_in_style_and_not_only_in_colour():
    styles = {
        line.get_linestyle()
        for axes in monitor_figure(RECORD).axes[:2]
        for line in axes.lines
        if line.get_linewidth() > 1
    }
    assert len(styles) == 2


def test_no_curve_is_drawn_where_there_is_no_auc():
    figure = monitor_figure(TOO_FEW)
    assert "no curve" in texts(figure)
    assert all(len(axes.lines) == 1 for axes in figure.axes[:2])


def test_a_record_without_crashes_of_random_sampling_can_be_drawn():
    nothing = CrashWarnings(Count(), Count(), (), Count())
    record = replace(
        RECORD, methods=tuple(replace(one, random=nothing, findings=nothing) for one in RECORD.methods)
    )
    monitor_figure(record).canvas.draw()


def test_text_puts_near_misses_before_nominal_episodes():
    said = "\n".join(monitor_lines(RECORD))
    assert said.index("near-misses  ") < said.index("nominal  ")
    assert "0.910 (0.800 to 0.950)" in said
    assert "stored: density on observations" in said


def test_one_step_is_no_steps():
    aucs = (LeadAuc(1, Auc(0.91), Auc(0.99)),)
    record = replace(RECORD, lead=1, methods=tuple(replace(one, leads=aucs) for one in RECORD.methods))
    said = "\n".join(monitor_lines(record))
    assert "1 step before the crash" in said
    assert "1 steps" not in said + texts(monitor_figure(record))


def test_long_leads_are_drawn_with_few_points():
    long = replace(WARNED, leads=(6, 10**6))
    record = replace(RECORD, methods=tuple(replace(one, random=long) for one in RECORD.methods))
    assert max(np.size(line.get_xdata()) for line in monitor_figure(record).axes[3].lines) < 10


def test_text_says_why_there_is_no_auc():
    lines = monitor_lines(TOO_FEW)
    assert "no AUC: 4 lineages" in lines
    assert not np.any(["0.910" in line for line in lines])


@pytest.mark.parametrize("what", ["fit", "test"])
def test_a_missing_input_is_explained(what):
    record = replace(RECORD, what=what, methods=RECORD.methods[1:])
    said = texts(monitor_figure(record))
    assert ("the policy shows none" if what == "fit" else "not part of this test") in said
