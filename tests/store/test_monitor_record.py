"""Records of monitors: what is written is read again, and what a stranger wrote is checked."""

import json
from dataclasses import replace

import pytest

from policyfuzz.core.errors import CampaignError, UsageError
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


def test_a_link_is_not_followed(tmp_path):
    path = record_file(tmp_path / "monitor.npz", "fit")
    path.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(UsageError, match="is a link"):
        write_monitor_record(path, RECORD)
    assert not (tmp_path / "elsewhere.json").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"methods": []},
        {"chosen_method": "magic"},
        {"lead": "soon"},
        {"lead": 7},  # of which there is no AUC
        {"lead": -1},
        {"wanted_rate": "NaN"},
        {"target": "a" * 1000},
        {"notes": ["a"] * 5000},
        {"more": 1},
        {"target": None},
    ],
)
def test_records_of_strangers_are_checked(change, tmp_path):
    write_monitor_record(tmp_path / "a.json", RECORD)
    values = json.loads((tmp_path / "a.json").read_text()) | change
    (tmp_path / "a.json").write_text(json.dumps(values))
    with pytest.raises(CampaignError, match="run policyfuzz monitor again"):
        read_monitor_record(tmp_path / "a.json")


@pytest.mark.parametrize("curve", [Curve("nominal", (), ()), Curve("nominal", (0.0,) * 500, (0.0,) * 500)])
def test_curves_of_strangers_are_bounded(curve, tmp_path):
    write_monitor_record(tmp_path / "a.json", replace(RECORD, methods=(replace(METHOD, curves=(curve,)),)))
    with pytest.raises(CampaignError, match="a curve has no points"):
        read_monitor_record(tmp_path / "a.json")


@pytest.mark.parametrize(
    "change",
    [
        {"random": replace(WARNED, leads=(2**61,))},
        {"findings": replace(WARNED, leads=(1,) * 2000)},
        {"findings": replace(WARNED, no_return_leads=(1,) * 2000)},
        {"findings": replace(WARNED, no_return_leads=())},
        {"random": replace(WARNED, in_time=Count(5, 3))},
        {"false_alarms": Count(-1, 3)},
        {"near_miss_alarms": Count(1, 3, 0.0, 7.0)},
        {"curves": (Curve("nominal", (0.0, 1e300), (0.0, 1.0)),)},
        {"curves": (Curve("nominal", (0.0, float("nan")), (0.0, 1.0)),)},
        {"leads": ()},
        {"leads": (*METHOD.leads, LeadAuc(2**61, Auc(), Auc()))},
        {"method": "a" * 1000},
    ],
)
def test_methods_of_strangers_are_checked(change, tmp_path):
    write_monitor_record(tmp_path / "a.json", replace(RECORD, methods=(METHOD, replace(METHOD, **change))))
    with pytest.raises(CampaignError, match="run policyfuzz monitor again"):
        read_monitor_record(tmp_path / "a.json")
