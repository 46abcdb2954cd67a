"""Records of monitors: what is written is read again, and what a stranger wrote is checked."""

import json
from dataclasses import replace

import pytest

from policyfuzz.core.errors import CampaignError
from policyfuzz.store.monitor_record import (
    Auc,
    Count,
    CrashWarnings,
    Curve,
    LeadAuc,
    MethodRecord,
    MonitorRecord,
    read_monitor_record,
    record_file,
    write_monitor_record,
)

WARNED = CrashWarnings(Count(9, 10, 0.5, 1.0), Count(10, 10, 0.7, 1.0), (6, 7, 3), Count(1, 2), (4, -2))
METHOD = MethodRecord(
    "logistic",
    "activations",
    0.9,
    Auc(0.95, 0.9, 1.0),
    (LeadAuc(5, Auc(0.9, 0.8, 0.95), Auc(0.99, 0.98, 1.0)),),
    (Curve("near-miss", (0.0, 0.2, 1.0), (0.0, 0.9, 1.0)), Curve("nominal", (0.0, 1.0), (0.0, 1.0))),
    1.5,
    Count(3, 1000, 0.001, 0.009),
    Count(5, 1000, 0.002, 0.011),
    Count(20, 100, 0.1, 0.3),
    WARNED,
    WARNED,
)
RECORD = MonitorRecord(
    "fit", "toy", "a policy", ("a", "b"), 5, 7, 50, 60, 70, 800, 20, 5, 0.01, "logistic", "activations",
    (METHOD, replace(METHOD, method="density", input="observations")),
)  # fmt: skip


def test_a_record_is_read_as_it_was_written(tmp_path):
    path = record_file(tmp_path / "monitor.npz", "fit")
    write_monitor_record(path, RECORD)
    assert path.name == "monitor.npz.fit.json"
    assert read_monitor_record(path) == RECORD
    assert read_monitor_record(path).chosen == METHOD


@pytest.mark.parametrize(
    "change",
    [
        {"methods": []},
        {"chosen_method": "magic"},
        {"lead": "soon"},
        {"more": 1},
        {"target": None},
    ],
)
def test_records_of_strangers_are_checked(change, tmp_path):
    write_monitor_record(tmp_path / "a.json", RECORD)
    values = json.loads((tmp_path / "a.json").read_text()) | change
    (tmp_path / "a.json").write_text(json.dumps(values))
    with pytest.raises(CampaignError, match="holds no record"):
        read_monitor_record(tmp_path / "a.json")


@pytest.mark.parametrize("curve", [Curve("nominal", (), ()), Curve("nominal", (0.0,) * 500, (0.0,) * 500)])
def test_curves_of_strangers_are_bounded(curve, tmp_path):
    write_monitor_record(tmp_path / "a.json", replace(RECORD, methods=(replace(METHOD, curves=(curve,)),)))
    with pytest.raises(CampaignError, match="a curve has no points"):
        read_monitor_record(tmp_path / "a.json")
