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


def test_status_is_a_value_and_never_part_of_a_query(result):
    assert result.rows("it's") == []
    assert result.rows("' OR '1'='1") == []


def test_findings_errors_and_history_are_typed_records(result):
    findings, errors, history = result.findings, result.errors, result.history
    assert len(findings) == result.progress.findings
    assert all(isinstance(one, pf.Finding) and one.kind == "ran" for one in findings)
    assert [one.id for one in findings[:2]] == [findings[0].id, findings[1].id]
    assert all(isinstance(one, pf.FailedEpisode) for one in errors)
    assert len(errors) == result.progress.errors > 0
    assert repr(history[-1]) == repr(result.progress)  # NaN equals nothing
    assert findings.rows() == result.rows()


def test_records_are_shown_as_a_table(result):
    lines = repr(result.findings).splitlines()
    assert lines[0] == f"{len(result.findings)} records"
    assert lines[1].split()[:3] == ["id", "status", "is_distinct"]
    assert lines[-1] == f"... {len(result.findings) - 10} more"
    assert "ValueError: too fast" in repr(result.errors[:1])
    assert ">red</td>" in result.findings._repr_html_()
    assert repr(result.findings[:0]) == "0 records"


def test_records_become_data_frames(result):
    pytest.importorskip("pandas", reason="the extra pandas")
    findings, errors = result.findings.to_pandas(), result.errors.to_pandas()
    assert len(findings) == result.progress.findings
    assert findings.index.name == "id"
    assert (findings["light"] == "red").all()
    assert findings["is_distinct"].sum() == result.progress.distinct_findings
    assert errors["text"].str.endswith("ValueError: too fast").all()
    assert (errors["input_kind"] > 9).all()
    assert result.history.to_pandas()["executions"].iloc[-1] == 300


def test_frames_without_rows_have_their_columns():
    pytest.importorskip("pandas", reason="the extra pandas")
    nothing = pf.fuzz("ripple:probability=1e-9", max_execs=100)
    assert len(nothing.findings) == len(nothing.errors) == 0
    assert {"kind", "return", *pf.load_target("ripple").inputs.names} <= set(
        nothing.findings.to_pandas().columns
    )
    assert "<th>crash_step</th>" not in nothing._repr_html_()


def test_without_pandas_only_the_data_frame_is_missing(result, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pandas"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(result.findings[0], pf.Finding)
    with pytest.raises(MissingExtra, match=r"pip install .*\[pandas\]'"):
        result.findings.to_pandas()


def test_notebooks_show_a_table_with_the_first_findings(result):
    shown = result._repr_html_()
    assert "<th>light</th>" in shown
    findings = shown[shown.index("<thead>") :]
    assert findings.count("<tr>") == 1 + min(10, result.progress.findings)
