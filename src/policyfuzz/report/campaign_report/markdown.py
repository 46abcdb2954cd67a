"""The report as Markdown, short: for the summary of a CI job or a comment."""

import re
from collections.abc import Sequence

from policyfuzz.core.visible import visible_line
from policyfuzz.report.campaign_report import side_by_side, words
from policyfuzz.report.campaign_report.view import CampaignView
from policyfuzz.report.commands import fuzz_command, replay_command, triage_command
from policyfuzz.report.quantities import format_seconds
from policyfuzz.report.statistics import percentage

#: What would begin a link, a picture, a tag, a cell or a heading. Names come from strangers.
_SPECIAL = re.compile(r"([\\`*_\[\]<>#!|~&@$]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
#: Characters of a name.
_LONGEST = 200
_ICONS = {words.FAILS: "❌", words.NOTHING_FOUND: "✅", words.UNKNOWN: "❔"}


def markdown_report(views: Sequence[CampaignView]) -> str:
    """The Markdown of all campaigns."""
    lines = ["# PolicyFuzz report", ""]
    for view in views:
        lines += [*_campaign_lines(view), ""]
    if len(views) > 1:
        lines += ["## Side by side", "", *_side_by_side_lines(views), ""]
    return "\n".join(lines).rstrip() + "\n"


def _campaign_lines(view: CampaignView) -> list[str]:
    found, now, config = words.verdict(view), view.progress, view.campaign.config
    rejected = {
        "flaky": now.flaky,
        "lucky": now.lucky,
        "unsolved": now.unsolved,
        "unconfirmed": now.unconfirmed,
    }
    facts = {
        "policy": escaped(words.policy_text(view)),
        "search": f"strategy {escaped(config.strategy)}, seed {config.seed}; the campaign"
        f" {escaped(words.state_text(view))}",
        "ran": f"{now.executions:,} episodes in {format_seconds(now.seconds)}",
        "found": f"{now.findings:,} confirmed findings, {now.distinct_findings:,} distinct,"
        f" {now.lineages:,} lineages",
        "failure probability": escaped(
            str(view.estimate).splitlines()[0] if view.estimate else str(view.probability)
        ),
        "not counted": ", ".join(f"{count:,} {name}" for name, count in rejected.items()),
        "errors and hangs": f"{now.errors:,} errors, {now.hangs:,} hangs,"
        f" {now.simulator_crashes:,} killed their process",
    }
    return [
        f"## {_ICONS[found.level]} {escaped(config.target)}",
        "",
        f"**{escaped(found.sentence)}**",
        "",
        "| | |",
        "| --- | --- |",
        *(f"| {name} | {value} |" for name, value in facts.items()),
        "",
        *_mode_lines(view),
        *_error_lines(view),
        "Run it again:",
        "",
        *_code(fuzz_command(view.campaign)),
    ]


def _mode_lines(view: CampaignView) -> list[str]:
    if not view.progress.findings:
        return []
    if not view.modes:
        rows = [
            f"| {one.id} | {escaped(one.kind)} | {one.crash_step} | {one.episode_return:.4g} |"
            for one in view.examples
        ]
        return [
            *("| finding | kind | step | return |", "| ---: | --- | ---: | ---: |", *rows, ""),
            *("Group them into failure modes, and look at the worst:", ""),
            *_code(
                triage_command(view.campaign),
                *(replay_command(view.campaign, one.id) for one in view.examples[:1]),
            ),
        ]
    rows = [
        f"| M{one.mode.number} | {escaped(one.mode.words or one.mode.kind)} | {len(one.mode.members):,} |"
        f" {one.mode.roots:,} | {_number(one.mode.severity)} | {_percent(one.mode.share)} |"
        f" {escaped(one.avoidable_text)} |"
        for one in view.modes
    ]
    stable = [] if view.has_stable_modes else [f"These groups are not stable: {escaped(_reason(view))}", ""]
    return [
        "| mode | what | findings | lineages | severity | share of random crashes | avoidable |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
        *(*rows, "", *stable, "Look at the worst:", ""),
        *_code(replay_command(view.campaign, f"M{view.modes[0].mode.number}")),
    ]


def _reason(view: CampaignView) -> str:
    return "" if view.triage.modes is None else view.triage.modes.reason


def _error_lines(view: CampaignView) -> list[str]:
    if not view.errors:
        return []
    rows = [f"| {one.count:,} | {escaped(one.kind)} | {escaped(one.summary)} |" for one in view.errors]
    return ["| errors | kind | what |", "| ---: | --- | --- |", *rows, ""]


def _side_by_side_lines(views: Sequence[CampaignView]) -> list[str]:
    rows = [
        f"| {escaped(view.name)} | {escaped(words.policy_text(view))} |"
        f" {escaped(view.campaign.config.strategy)} |"
        f" {view.progress.executions:,} | {view.progress.findings:,} | {view.progress.distinct_findings:,} |"
        f" {view.probability.brief} |"
        for view in views
    ]
    notes = [
        f"{escaped(one.first.label)} found more than {escaped(one.second.label)} in {one.effect:.0%} of pairs"
        f" after {one.episodes:,} episodes"
        + ("." if one.p_value is None else f", p = {one.p_value:.3g} (Mann-Whitney, corrected by Holm).")
        for one in side_by_side.contrasts(views)
    ]
    if left_out := side_by_side.left_out_text(views):
        notes.append(left_out)
    heads = "| campaign | policy | strategy | episodes | findings | distinct | failure probability (95 %) |"
    lines = [heads, "| --- | --- | --- | ---: | ---: | ---: | --- |", *rows]
    return [*lines, *(part for note in notes for part in ("", note))]


def escaped(text: str) -> str:
    """`text` of a stranger in one line, as Markdown shows it and does not obey it."""
    line = visible_line(text)
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return _SPECIAL.sub(r"\\\1", line)


def _code(*commands: str) -> list[str]:
    """Commands in a block that none of them can end."""
    lines = [visible_line(one) for one in commands]
    fence = "`" * max(3, 1 + max((len(run) for one in lines for run in re.findall("`+", one)), default=0))
    return [f"{fence}sh", *lines, fence, ""]


def _number(value: float) -> str:
    return "" if value != value else f"{value:.3g}"


def _percent(value: float) -> str:
    return "" if value != value else percentage(value)
