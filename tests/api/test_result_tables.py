import sys

import numpy as np
import pytest

import policyfuzz as pf
from policyfuzz.core.errors import MissingExtra


class Lights:
    """Crashes where the light is red; raises where the speed is above 9."""

    def reset(self, values, seed):
        self.is_red = values["light"] == "red"
        self.speed, self.lanes = values["kind"], values["lanes"]
        return np.array([self.speed]), {"safe": 1.0}

    def step(self, action):
        if self.speed > 9:
            raise ValueError("too fast")
        return np.array([self.speed]), -self.speed, True, {"safe": -1.0 if self.is_red else 1.0}


def lights():
    inputs = pf.InputSpace(
        (pf.Choice("light", ("green", "amber", "red")), pf.Real("kind", 0, 10), pf.Integer("lanes", 1, 3))
    )
    return pf.Target(
        name="lights",
        inputs=inputs,
        simulator=lambda: pf.OneAtATime(Lights, inputs, signals=("safe",)),
        policy=lambda: pf.EachAlone(lambda observation: 0.0),
        oracle=pf.Below("safe", 0.0, kind="ran"),
        horizon=5,
    )


@pytest.fixture(scope="module")
def result():
    return pf.fuzz(lights, max_execs=300)


def test_rows_have_inputs_by_name_and_choices_in_words(result):
    rows = result.rows()
    assert len(rows) == result.progress.findings > 0
    assert {row["light"] for row in rows} == {"red"}
    assert all(isinstance(row["is_distinct"], bool) for row in rows)
    # an input that is called like a column of ours
    assert all(0 <= row["input_kind"] <= 9 for row in rows)
    assert {row["kind"] for row in rows} == {"ran"}
    assert len(result.rows(status=None)) >= len(rows)
    assert result.rows(status="flaky") == []


def test_failure_probability_is_that_of_the_random_draws(result):
    estimate, progress = result.failure_probability, result.progress
    assert (estimate.draws, estimate.crashes) == (progress.samples, progress.sample_crashes)
    assert estimate.low < 1 / 3 < estimate.high  # red lights, of those episodes that can be run
    assert result.summary["failure_probability"]["low"] == estimate.low


def test_findings_errors_and_history_are_data_frames(result):
    pytest.importorskip("pandas", reason="the extra pandas")
    assert len(result.findings) == result.progress.findings
    assert result.findings.index.name == "id"
    assert (result.findings["light"] == "red").all()
    assert result.findings["is_distinct"].sum() == result.progress.distinct_findings
    assert len(result.errors) == result.progress.errors > 0
    assert result.errors["text"].str.endswith("ValueError: too fast").all()
    assert (result.errors["input_kind"] > 9).all()
    assert result.history["executions"].iloc[-1] == 300


def test_frames_without_rows_have_their_columns():
    pytest.importorskip("pandas", reason="the extra pandas")
    nothing = pf.fuzz("ripple:probability=1e-9", max_execs=100)
    assert len(nothing.findings) == len(nothing.errors) == 0
    assert {"kind", "return", *pf.load_target("ripple").inputs.names} <= set(nothing.findings.columns)
    assert "<table>" not in nothing._repr_html_()


def test_without_pandas_there_is_a_hint_and_there_are_rows(result, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pandas"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'policyfuzz\[pandas\]'"):
        _ = result.findings
    assert result.rows()


def test_notebooks_show_a_table_with_the_first_findings(result):
    shown = result._repr_html_()
    assert "<th>light</th>" in shown
    assert shown.count("<tr>") == 1 + min(10, result.progress.findings)
