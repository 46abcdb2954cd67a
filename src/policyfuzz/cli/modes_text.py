"""Failure modes, printed for people and for programs."""

import math
import shlex
from dataclasses import asdict
from typing import Any

from policyfuzz.cli.summary import replay_lines
from policyfuzz.report.mode_summaries import ModeSummary
from policyfuzz.report.ranking import worst_and_most_different
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.triage_file import Triage
from policyfuzz.store.triage_records import Avoidance, Boundary, Modes

#: Numbers of members that the line of a mode shows, and of findings where modes say little.
_MEMBERS_SHOWN, _EXAMPLES = 8, 6


def modes_lines(campaign: CampaignReader, triage: Triage, summaries: list[ModeSummary]) -> list[str]:
    """All failure modes, the worst first, some lines each."""
    modes = triage.modes
    if modes is None:
        return ["the failure modes are not known yet"]
    if not summaries:
        return [f"no failure modes: {modes.reason or 'there are no confirmed findings'}"]
    count = f"{len(summaries)} failure mode{'s' if len(summaries) > 1 else ''}"
    lines = [f"{count} in {modes.findings:,} confirmed findings, {_trust_text(modes)}"]
    for one in summaries:
        lines += ["", *_block(one)]
    newer = campaign.progress().findings - modes.findings
    folder = shlex.quote(str(campaign.folder))
    if not modes.is_stable:
        unlike = worst_and_most_different(campaign, _EXAMPLES)
        numbers = ", ".join(str(one.id) for one in unlike)
        lines += ["", f"    the worst finding, and others most unlike it: {numbers}"]
    lines += ["", *replay_lines(campaign, f"M{summaries[0].mode.number}", "look at one:")]
    lines.append(f"in full:      policyfuzz show {folder} M{summaries[0].mode.number}")
    lines.append(f"findings:     policyfuzz show {folder} --findings")
    if newer > 0:
        lines.append(f"{newer:,} findings are newer than this: policyfuzz triage {folder}")
    return lines


def mode_lines(campaign: CampaignReader, summary: ModeSummary, triage: Triage) -> list[str]:
    """One failure mode in full."""
    mode = summary.mode
    shown = ", ".join(map(str, mode.members[:_MEMBERS_SHOWN]))
    more = len(mode.members) - _MEMBERS_SHOWN
    lines = [*_block(summary), f"    findings   {shown}" + (f" and {more:,} more" if more > 0 else "")]
    if not math.isnan(mode.robustness):
        lines.append(
            f"    robustness {mode.robustness:.0%} of {mode.neighbours} near neighbours of finding"
            f" {mode.representative} crash, too"
        )
    lines += [f"    {line}" for line in avoidance_lines(summary.avoidance)]
    lines += [f"    {line}" for line in boundary_lines(triage.of(mode.representative).boundary)]
    return [*lines, *replay_lines(campaign, mode.representative, "look at it:")]


def avoidance_lines(known: Avoidance | None) -> list[str]:
    """Whether a crash could be avoided, how, and up to when; labels as wide as those of `show`."""
    if known is None:
        return []
    how = f": {known.words}" if known.words else ""
    lines = [f"avoidable  {known.verdict}{how} ({known.episodes} episodes)"]
    if known.disturbances:
        lines.append(
            f"disturbed  {known.survived} of {known.disturbances} small changes of its actions avoid it"
        )
    when = known.standing if known.last_chance is None else f"last chance at step {known.last_chance}"
    return [*lines, f"decided    {when}" + (f": {known.blamed}" if known.blamed else "")]


def boundary_lines(known: Boundary | None) -> list[str]:
    """How far a finding is from safe; labels as wide as those of `show`."""
    if known is None or not known.crashes:
        return []
    if not known.passing:
        return [f"from safe  not known: everything tried in {known.episodes} episodes crashes"]
    changes = [f"{one.dimension} {one.amount:+.4g} {one.unit}".rstrip() for one in known.changes[:3]]
    lines = [
        f"from safe  {known.distance:.3g} in the unit cube" + (": " if changes else "") + " or ".join(changes)
    ]
    if known.no_matter:
        lines.append(f"no matter  {', '.join(known.no_matter)}")
    return lines


def mode_values(summary: ModeSummary) -> dict[str, Any]:
    """One failure mode for a program."""
    values = asdict(summary.mode)
    values["findings"] = len(summary.mode.members)
    return values | summary.counts | {"avoidance": summary.avoidance and asdict(summary.avoidance)}


def _trust_text(modes: Modes) -> str:
    if len(modes.modes) == 1 or modes.reason:  # two halves of one group always agree
        return modes.reason or "no gap divides them"
    return f"stable: halves of them agree (adjusted Rand index {modes.agreement:.2f})"


def _block(summary: ModeSummary) -> list[str]:
    mode = summary.mode
    facts = [
        f"{len(mode.members):,} finding{'s' if len(mode.members) != 1 else ''} from {mode.roots:,}"
        f" lineage{'s' if mode.roots != 1 else ''}"
    ]
    if not math.isnan(mode.share):
        facts.append(f"{mode.share:.0%} of random crashes ({mode.share_low:.0%} to {mode.share_high:.0%})")
    if not math.isnan(mode.severity):
        facts.append(f"up to {mode.severity:.3g} beyond the threshold")
    if not math.isnan(mode.robustness):
        facts.append(f"{mode.robustness:.0%} of neighbours crash")
    how = ", ".join(filter(None, (summary.avoidable_text, summary.decided_text)))
    return [
        f"M{mode.number}  {mode.kind}: {', '.join(facts)}",
        *([f"    {mode.words}"] if mode.words else []),
        f"    {how}",
    ]
