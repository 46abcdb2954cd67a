"""policyfuzz minimize: how far a finding is from safe."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from policyfuzz.cli.echo import echo
from policyfuzz.cli.options import FOLDER, as_json, asks_for_workers, trust
from policyfuzz.cli.process import user_prints_to_stderr, verdict_stands

if TYPE_CHECKING:
    from policyfuzz.core.target import Target
    from policyfuzz.execution.executor import ExecutorChoice
    from policyfuzz.store.records import Finding
    from policyfuzz.store.triage_records import Boundary, Change, RuleSearch

#: Names on one line.
_NAMES_SHOWN = 12

EPILOG = """\
\b
Examples:
  policyfuzz minimize campaigns/acasxu-1 1
  policyfuzz minimize campaigns/acasxu-1 1 --max-execs 200    sharper, and more dimensions
  policyfuzz minimize campaigns/acasxu-1 1 --rule             in which box around it do inputs crash?
  policyfuzz minimize campaigns/acasxu-1 1 --policy acasxu:repaired/   and with another policy?

\b
Exit code 1 if the policy crashes, 0 if it does not."""


@click.command(epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("finding", metavar="MODE|FINDING")
@click.option("--target", metavar="NAME", help="Use this target instead of the one that the campaign names.")
@click.option("--policy", metavar="URI", help="Use this policy instead of the one of the campaign.")
@click.option(
    "--max-execs",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    metavar="N",
    help="Episodes for the boundary at most.",
)
@click.option(
    "--rule", "wants_rule", is_flag=True, help="Also look for a rule, in up to 1,000 more episodes."
)
@asks_for_workers
@trust
@as_json
def command(
    folder: Path,
    finding: str,
    target: str | None,
    policy: str | None,
    max_execs: int,
    wants_rule: bool,
    executor: "ExecutorChoice",
    trust: bool,
    is_json: bool,
) -> int:
    """Say what would have to change for FINDING of the campaign in DIR not to crash.

    Looks for the nearest input that passes, for the smallest change of each dimension that avoids the crash,
    and for dimensions that play no part. All inputs that it names were run. `show` tells of it afterwards.
    """
    from policyfuzz.cli.console import print_json, talk
    from policyfuzz.cli.summary import replay_lines
    from policyfuzz.report.mode_summaries import finding_named
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.store.triage_file import FindingTriage, add_to_triage, triage_of
    from policyfuzz.triage.boundary import find_boundary
    from policyfuzz.triage.replay import has_other_code, target_of
    from policyfuzz.triage.rules import find_rule, other_findings

    campaign = CampaignReader(folder)
    found = finding_named(campaign, triage_of(campaign), finding)
    rule: RuleSearch | None = None
    with talk().status("looking for inputs that pass"), user_prints_to_stderr():
        loaded = target_of(campaign, policy, trust, target, executor)
        is_other = has_other_code(campaign, loaded)
        if is_other:
            echo("note: the files that the target is written in have changed since", err=True)
        run = executor.make_runner(loaded)
        boundary = find_boundary(loaded, run, found.input, found.case_seed, max_execs)
        if wants_rule and boundary.crashes:
            rule = find_rule(loaded, run, found.input, found.case_seed, other_findings(campaign, found))
    if policy is None and target is None and boundary.crashes and not is_other:
        known = {found.id: FindingTriage(boundary=boundary)}
        add_to_triage(folder, campaign.about.get("instance", ""), known)
    with verdict_stands():
        if is_json:
            print_json(_as_dictionary(loaded, found, boundary, rule))
        else:
            lines = [*_boundary_lines(loaded, found, boundary, policy), *_rule_lines(loaded, rule)]
            echo("\n".join([*lines, *replay_lines(campaign, found.id, "replay it:")]))
    return int(boundary.crashes)


def _boundary_lines(
    target: "Target", finding: "Finding", boundary: "Boundary", policy: str | None
) -> list[str]:
    if not boundary.crashes:
        whose = "" if policy is None else f" with {policy}"
        return [f"finding {finding.id} does not crash any more{whose}"]
    if not boundary.passing:
        lines = [f"finding {finding.id} crashes, and so does everything else in {boundary.episodes} episodes"]
    else:
        gap = f", {boundary.gap:.2g} beyond one that crashes"
        lines = [
            f"finding {finding.id} crashes; the nearest input found that passes is {boundary.distance:.2g}"
            f" away in the unit cube{gap if boundary.gap < boundary.distance else ''}"
            f" ({boundary.episodes} episodes)",
            *_pair_lines(target, finding, boundary),
        ]
    if boundary.changes:
        lines.append("a change of one dimension alone that avoids the crash, the smallest found")
        lines += [f"    {_change_text(target, finding, change)}" for change in boundary.changes]
    if boundary.no_matter:
        lines.append(f"no value tried avoids it, all over the range of: {_names(boundary.no_matter)}")
    if boundary.not_known:
        lines.append(f"not known by itself, --max-execs may tell: {_names(boundary.not_known)}")
    return lines


def _pair_lines(target: "Target", finding: "Finding", boundary: "Boundary") -> list[str]:
    """The two sides, a line for each dimension that differs from the finding."""
    lines = [f"    {'':<18} {'finding':>12} {'crashes':>12} {'passes':>12}"]
    rows = zip(
        target.inputs.dimensions, finding.input.tolist(), boundary.crashing, boundary.passing, strict=True
    )
    for dimension, *values in rows:
        if values[0] != values[2]:
            texts = " ".join(f"{dimension.describe(value):>12}" for value in values)
            lines.append(f"    {dimension.name:<18} {texts} {dimension.unit}".rstrip())
    same = sum(one == other for one, other in zip(finding.input.tolist(), boundary.passing, strict=True))
    return [*lines, *([f"    {same} other dimensions stay as they are"] if same else [])]


def _change_text(target: "Target", finding: "Finding", change: "Change") -> str:
    """For a reader: own_speed 512 -> 498 ft/s, -14 (-7 is not enough)."""
    place = target.inputs.names.index(change.dimension)
    dimension = target.inputs.dimensions[place]
    before, after = (dimension.describe(one) for one in (float(finding.input[place]), change.value))
    text = f"{change.dimension} {before} -> {after} {change.unit}".rstrip()
    if dimension.kind in ("choice", "seed"):
        return text
    tried = f" ({change.not_enough:+.3g} is not enough)" if change.not_enough else ""
    return f"{text}, {change.amount:+.3g}{tried}"


def _names(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _rule_lines(target: "Target", search: "RuleSearch | None") -> list[str]:
    from policyfuzz.triage.rules import conditions

    if search is None:
        return []
    if search.rule is None:
        return [f"no rule: {search.reason} ({search.episodes} episodes)"]
    rule = search.rule
    covered = (
        "" if math.isnan(rule.coverage) else f"; {rule.coverage:.1%} of {rule.others:,} others lie in it"
    )
    return [
        f"rule: it crashes where {' and '.join(conditions(rule, target.inputs.dimensions)) or 'anything'}",
        f"    {rule.precision:.0%} of {rule.draws} fresh draws crash"
        f" (95 %: {rule.precision_low:.0%} to {rule.precision_high:.0%}){covered}"
        f" ({search.episodes} episodes)",
    ]


def _as_dictionary(
    target: "Target", finding: "Finding", boundary: "Boundary", search: "RuleSearch | None"
) -> dict[str, Any]:
    from policyfuzz.store.plain_records import to_plain
    from policyfuzz.triage.rules import conditions

    names = target.inputs.names
    page: dict[str, Any] = {"finding": finding.id, **to_plain(boundary)}
    for side in ("crashing", "passing"):
        page[side] = dict(zip(names, page[side], strict=False)) or None
    page["input"] = dict(zip(names, finding.input.tolist(), strict=True))
    if search is not None:
        words = [] if search.rule is None else conditions(search.rule, target.inputs.dimensions)
        page["rule"] = to_plain(search) | {"conditions": words}
    return page
