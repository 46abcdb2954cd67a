"""What a monitor is worth, as lines of text: the unflattering column first."""

import math

import numpy as np

from policyfuzz.store.monitor_record import Auc, Count, CrashWarnings, MonitorRecord


def monitor_lines(record: MonitorRecord) -> list[str]:
    """What `record` says, for a terminal."""
    lines = [f"{record.target}: policy {record.policy}; {', '.join(record.campaigns)}"]
    lines.append(
        f"tested on {record.crashes:,} crashes of {record.lineages} lineages, {record.near_misses:,}"
        f" near-misses and {record.nominal:,} nominal ones; fitted to {record.fitted_lineages} other lineages"
    )
    if record.why_no_activations:
        lines.append(f"no activations: {record.why_no_activations}")
    lines += ["", *_auc_lines(record), "", *_alarm_lines(record), "", *_chosen_lines(record)]
    return [*lines, *(f"note: {note}" for note in record.notes)]


def _auc_lines(record: MonitorRecord) -> list[str]:
    if record.why_no_auc:
        return [f"no AUC: {record.why_no_auc}"]
    lines = [
        f"AUC of episodes, {_steps(record.lead)} before the crash (95 % interval by lineages)",
        f"{'':<28}{'near-misses':<24}{'nominal':<24}{'frames, near-misses':<20}",
    ]
    for one in record.methods:
        at = next(auc for auc in one.leads if auc.lead == record.lead)
        cells = _auc(at.near_miss), _auc(at.nominal), _auc(one.frames)
        lines.append(f"{_name(one.method, one.input):<28}{cells[0]:<24}{cells[1]:<24}{cells[2]:<20}".rstrip())
    best = record.chosen
    others = ", ".join(f"{auc.near_miss.value:.3f} at {auc.lead}" for auc in best.leads)
    return [*lines, f"stored, near-misses, by steps before the crash: {others}"]


def _alarm_lines(record: MonitorRecord) -> list[str]:
    draws = record.chosen.random.in_time.of
    lines = [
        f"alarms at a threshold for {record.wanted_rate:.3g} false ones per nominal episode; warned:"
        f" {_steps(record.lead)} ahead or more; {draws:,} crash{'es' * (draws != 1)} of random sampling",
        f"{'':<28}{'false, nominal':<24}{'near-misses':<14}{'warned, findings':<20}{'warned, random':<20}",
    ]
    for one in record.methods:
        cells = (
            _count(one.false_alarms, 2),
            f"{one.near_miss_alarms.rate:.1%}" if one.near_miss_alarms.of else "-",
            _count(one.findings.in_time),
            _count(one.random.in_time),
        )
        name = _name(one.method, one.input)
        lines.append(f"{name:<28}{cells[0]:<24}{cells[1]:<14}{cells[2]:<20}{cells[3]:<20}".rstrip())
    return lines


def _chosen_lines(record: MonitorRecord) -> list[str]:
    one = record.chosen
    verb = "stored" if record.what == "fit" else "tested"
    lines = [f"{verb}: {one.method} on {one.input}, threshold {one.threshold:.4g}"]
    for name, found in (("crashes of random sampling", one.random), ("findings", one.findings)):
        if found.in_time.of:
            lines.append(f"  {name}: {_warned(found)}")
    known = one.findings.before_no_return
    if known.of:
        lead = round(float(np.median(one.findings.no_return_leads)))
        lines.append(
            f"  before the point of no return: {_count(known)} of {known.of} findings where it is known,"
            f" median {_steps(lead)}"
        )
    return lines


def _warned(found: CrashWarnings) -> str:
    leads = [lead for lead in found.leads if lead > 0]
    median = f", median {_steps(round(float(np.median(leads))))} ahead" if leads else ""
    return f"{found.at_all.count:,} of {found.at_all.of:,} have an alarm{median}"


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"


def _name(method: str, given: str) -> str:
    return f"{method}, {given}"


def _auc(auc: Auc) -> str:
    return "-" if math.isnan(auc.value) else f"{auc.value:.3f} ({auc.low:.3f} to {auc.high:.3f})"


def _count(count: Count, digits: int = 0) -> str:
    if not count.of:
        return "-"
    return f"{count.rate:.{digits}%} ({count.low:.{digits}%} to {count.high:.{digits}%})"
