"""Numbers and records as people read them; pages show these words, and live numbers change to them."""

import json
import math
from collections.abc import Mapping
from typing import Any

from policyfuzz.report.instances import RUNNING, STOPPED
from policyfuzz.report.quantities import format_rate, format_seconds
from policyfuzz.report.statistics import FailureProbability, percentage
from policyfuzz.store.records import CONFIRMED, FLAKY, NEW, UNSOLVED, Finding, Progress

#: What stands where nothing is known.
NOTHING = "\N{EN DASH}"
#: Characters of a name or value in a table: a file from a stranger may hold a million.
LONGEST = 120
#: Numbers between these are written in full, without digits after the point.
_LARGE, _HUGE = 1e4, 1e12


def seconds_text(seconds: float | None) -> str:
    """`seconds` for a reader; nothing if that is not known."""
    return NOTHING if seconds is None or not math.isfinite(seconds) else format_seconds(seconds)


def number_text(value: float | None, digits: int = 4) -> str:
    """A number of any size in a few digits."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:,.0f}" if _LARGE <= abs(value) < _HUGE else f"{value:,.{digits}g}"


def share_text(share: float) -> str:
    """A share as a percentage; nothing if it is not known."""
    return percentage(share) if math.isfinite(share) else NOTHING


def short(text: object, longest: int = LONGEST) -> str:
    """`text` in one line of bounded length."""
    line = " ".join(str(text).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def value_text(dimension: Mapping[str, Any], value: float, digits: int = 6) -> str:
    """The value of an input: a number, or the name of what was chosen."""
    options = dimension.get("options")
    if options:
        return short(json.loads(options)[int(value)])
    if dimension["kind"] in ("integer", "seed"):
        return f"{value:.0f}"
    return f"{value:,.0f}" if _LARGE <= abs(value) < _HUGE else f"{value:.{digits}g}"


def state_text(state: str, stop_reason: str | None) -> str:
    """What a campaign is doing, in a word or two."""
    if state == RUNNING:
        return "running"
    return (
        f"finished: {short(stop_reason, 40)}" if state == STOPPED and stop_reason else "not stopped cleanly"
    )


def standing_text(finding: Finding) -> str:
    """What makes a finding count, or not."""
    others = {NEW: "not confirmed yet", FLAKY: "flaky: its second run differed"}
    others[UNSOLVED] = "no reference policy survives"
    if finding.status != CONFIRMED:
        return others.get(finding.status, short(finding.status))
    if finding.is_distinct:
        return "distinct"
    if finding.needs_luck:
        return "needs a lucky case seed"
    return "waits for other case seeds" if finding.is_novel else "like an earlier finding"


def luck_text(finding: Finding) -> str:
    """How often a finding crashes with other case seeds; empty if that was not tried."""
    share = FailureProbability.of(finding.reseeded_crashes or 0, finding.reseeded or 0)
    if not share.draws:
        return ""
    interval = f"{share.low:.0%} to {share.high:.0%}"
    return f"{share.crashes} of {share.draws} crash ({share.probability:.0%}, 95 %: {interval})"


def numbers_of(progress: Progress, is_solvability_tested: bool, since: float | None) -> dict[str, str]:
    """The numbers of a campaign that move while it runs, by name."""
    failure = FailureProbability.of_campaigns([progress], is_solvability_tested)
    return {
        "executions": f"{progress.executions:,}",
        "speed": format_rate(progress.executions_per_second),
        "seconds": seconds_text(progress.seconds),
        "findings": f"{progress.findings:,}",
        "distinct": f"{progress.distinct_findings:,}",
        "lineages": f"{progress.lineages:,}",
        "since": seconds_text(since),
        "repeats": f"{progress.repeats:,}",
        "flaky": f"{progress.flaky:,}",
        "unsolved": f"{progress.unsolved:,}",
        "lucky": f"{progress.lucky:,}",
        "unconfirmed": f"{progress.unconfirmed + progress.in_trial:,}",
        "imported": f"{progress.imported_findings:,}",
        "failures": f"{progress.failures:,}",
        "errors": f"{progress.errors:,}",
        "hangs": f"{progress.hangs:,}",
        "simulator_crashes": f"{progress.simulator_crashes:,}",
        "corpus": f"{progress.corpus:,}",
        "samples": f"{progress.samples:,}",
        "mutants": f"{progress.mutants:,}",
        "sample_rate": share_text(progress.sample_crash_rate),
        "mutant_rate": share_text(progress.mutant_crash_rate),
        "probability": failure.brief,
        "valid": share_text(progress.valid_rate),
        "workers": f"{progress.workers_ready:,} of {progress.workers:,}",
        "busy": f"{progress.utilisation:.0%}" if math.isfinite(progress.utilisation) else NOTHING,
        "restarts": f"{progress.restarts:,}",
        "batches": f"{progress.batch:,}",
    }
