"""What fitting or testing a monitor has shown: a JSON file beside the monitor, for pages and pictures."""

import math
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.store.results_beside import read_record, write_beside

#: Points of a curve, and single lead times, at most.
MOST_POINTS, MOST_LEADS = 200, 1000
#: No episode has more steps, no name or text more characters, and no list more entries.
_MOST_STEPS, _MOST_NAME, _MOST_TEXT, _MOST_ENTRIES = 1_000_000, 200, 10_000, 1000
#: Methods on inputs, leads and curves of each, at most.
_MOST_METHODS = 100


@dataclass(frozen=True, slots=True)
class Auc:
    """Area under the ROC curve of episodes: how often a crash scores higher than an episode that passes.

    Every lineage counts the same, however many crashes it has. NaN where there is nothing to compare.
    """

    value: float = math.nan
    low: float = math.nan  #: 95 % interval, by drawing lineages again
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class LeadAuc:
    """How well crashes are told from episodes that pass, by what was seen so many steps before the crash."""

    lead: int
    near_miss: Auc
    nominal: Auc


@dataclass(frozen=True, slots=True)
class Curve:
    """A ROC curve of episodes."""

    negatives: str  #: "near-miss" or "nominal"
    false_alarms: tuple[float, ...]  #: share of the episodes that pass, rising from 0 to 1
    detected: tuple[float, ...]  #: share of the crashes


@dataclass(frozen=True, slots=True)
class Count:
    """So many of so many, with the exact 95 % interval of the rate."""

    count: int = 0
    of: int = 0
    low: float = 0.0
    high: float = 1.0

    @property
    def rate(self) -> float:
        """NaN of nothing."""
        return self.count / self.of if self.of else math.nan


@dataclass(frozen=True, slots=True)
class CrashWarnings:
    """Which crashes an alarm came before, and how long before."""

    in_time: Count  #: at least `MonitorRecord.lead` steps before the crash
    at_all: Count
    leads: tuple[int, ...]  #: steps from the first alarm to the crash, of some crashes; 0: no alarm
    before_no_return: Count  #: no later than the last step at which a crash could be avoided, where known
    no_return_leads: tuple[int, ...] = ()  #: steps from the first alarm to that step; negative: too late


@dataclass(frozen=True, slots=True)
class MethodRecord:
    """What one method on one input came to."""

    method: str
    input: str  #: "observations" or "activations"
    selection: float  #: AUC against near-misses inside the training part, by which the default is chosen
    frames: Auc  #: of single decisions within the window against those of near-misses
    leads: tuple[LeadAuc, ...]  #: nothing below 10 lineages
    curves: tuple[Curve, ...]
    threshold: float
    calibration: Count  #: alarms among the nominal episodes that the threshold comes from
    false_alarms: Count  #: among further nominal episodes
    near_miss_alarms: Count
    findings: CrashWarnings  #: crashes of held-out lineages
    random: CrashWarnings  #: crashes of random draws, which no search has touched


@dataclass(frozen=True, slots=True)
class MonitorRecord:
    """What fitting or testing a monitor has shown."""

    what: str  #: "fit" or "test"
    target: str
    policy: str
    campaigns: tuple[str, ...]
    lineages: int  #: of crashes, held out
    fitted_lineages: int  #: of the crashes that the monitor was fitted to
    crashes: int  #: held out
    near_misses: int
    nominal: int
    draws: int  #: random ones that were looked at for crashes
    window: int
    lead: int  #: steps before a crash that an alarm is in time
    wanted_rate: float
    chosen_method: str
    chosen_input: str
    methods: tuple[MethodRecord, ...]
    why_no_auc: str = ""  #: why there is no AUC
    why_no_activations: str = ""
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> MethodRecord:
        """The one that is stored."""
        wanted = self.chosen_method, self.chosen_input
        return next(one for one in self.methods if (one.method, one.input) == wanted)


def record_file(monitor: Path, what: str) -> Path:
    """Where the record of the file `monitor` lies: beside it."""
    return monitor.with_name(f"{monitor.name}.{what}.json")


def write_monitor_record(path: Path, record: MonitorRecord) -> None:
    """Write `record` into the file `path`."""
    write_beside(path.parent, path.name, record)


def read_monitor_record(path: Path) -> MonitorRecord:
    """The record in the file `path`, which may be a stranger's."""
    return read_record(path, MonitorRecord, "monitor", check=_check)


def _check(record: MonitorRecord) -> None:
    """Raise ValueError if no study can have written `record`."""
    names = record.what, record.target, record.chosen_method, record.chosen_input
    texts = record.policy, record.why_no_auc, record.why_no_activations, *record.campaigns, *record.notes
    if max(map(len, names)) > _MOST_NAME or max(map(len, texts)) > _MOST_TEXT:
        raise ValueError("it has too long a name")
    if max(len(record.campaigns), len(record.notes)) > _MOST_ENTRIES or len(record.methods) > _MOST_METHODS:
        raise ValueError("it has too many entries")
    if not 0 <= record.lead <= _MOST_STEPS or not 0 <= record.wanted_rate <= 1:
        raise ValueError(f"its lead is {record.lead}, and its rate {record.wanted_rate}")
    if (record.chosen_method, record.chosen_input) not in {(one.method, one.input) for one in record.methods}:
        raise ValueError("the method that was chosen is missing")
    for one in record.methods:
        if max(len(one.method), len(one.input)) > _MOST_NAME or len(one.curves) > _MOST_METHODS:
            raise ValueError("a method has too long a name, or too many curves")
        for curve in one.curves:
            _check_curve(curve)
        _check_leads(one, record)
        for count in (one.calibration, one.false_alarms, one.near_miss_alarms):
            _check_count(count)
        for warned in (one.random, one.findings):
            _check_warnings(warned)


def _check_curve(curve: Curve) -> None:
    if not 0 < len(curve.false_alarms) == len(curve.detected) <= MOST_POINTS:
        raise ValueError("a curve has no points, or too many")
    if not all(0 <= share <= 1 for share in (*curve.false_alarms, *curve.detected)):
        raise ValueError("a curve leaves the range from 0 to 1")


def _check_leads(one: MethodRecord, record: MonitorRecord) -> None:
    leads = [auc.lead for auc in one.leads]
    if len(leads) > _MOST_METHODS or not all(0 <= lead <= _MOST_STEPS for lead in leads):
        raise ValueError("a method has too many leads, or too long ones")
    if record.lead not in leads and not record.why_no_auc:
        raise ValueError(f"a method has no AUC {record.lead} steps ahead")


def _check_count(count: Count) -> None:
    if not 0 <= count.count <= count.of or not 0 <= count.low <= count.high <= 1:
        raise ValueError(f"{count.count} of {count.of} is no count")


def _check_warnings(warned: CrashWarnings) -> None:
    for count in (warned.in_time, warned.at_all, warned.before_no_return):
        _check_count(count)
    for leads in (warned.leads, warned.no_return_leads):
        if len(leads) > MOST_LEADS or not all(-_MOST_STEPS <= lead <= _MOST_STEPS for lead in leads):
            raise ValueError("it has too many lead times, or too long ones")
    if warned.before_no_return.of and not warned.no_return_leads:
        raise ValueError("points of no return have no lead times")
