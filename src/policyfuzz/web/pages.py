"""What each page shows of one campaign, as plain values for templates and scripts."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.settings import CampaignConfig, StopReason
from policyfuzz.report.campaign_report.words import verdict
from policyfuzz.report.commands import (
    POLICY_OF_TARGET,
    code_of,
    next_commands,
    replay_command,
)
from policyfuzz.report.figures.distributions import histograms
from policyfuzz.report.figures.history import discovery, time_split
from policyfuzz.report.figures.maps import behaviour_map, input_map
from policyfuzz.report.figures.sample import sample_findings
from policyfuzz.report.instances import instance_at
from policyfuzz.report.marks import mode_mark
from policyfuzz.report.mode_summaries import ModeSummary, mode_summaries
from policyfuzz.report.ranking import representatives
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.store.coverage_file import coverage_of
from policyfuzz.store.database import is_being_written
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import FailedEpisode, Finding, Progress
from policyfuzz.store.triage_file import Triage, read_triage
from policyfuzz.store.triage_records import Avoidance, Boundary
from policyfuzz.triage.estimate import Estimate
from policyfuzz.triage.stored_estimate import estimate_or_problem
from policyfuzz.web.catalogue import Stamp
from policyfuzz.web.films import stored_media
from policyfuzz.web.findings import PAGE_SIZE, Query, finding_page
from policyfuzz.web.inputs import input_table
from policyfuzz.web.words import (
    luck_text,
    number_text,
    numbers_of,
    seconds_text,
    short,
    standing_text,
    state_text,
    value_text,
)

#: Findings that an overview shows, columns of inputs in lists, and characters of a traceback.
_EXAMPLES, _INPUT_COLUMNS, _LONGEST_TRACEBACK = 6, 4, 20_000


def known_triage(campaign: CampaignReader) -> Triage:
    """What is known of the findings of `campaign`; a large file is read again only if it has changed."""
    return _triage(
        campaign.folder, campaign.about.get("instance", ""), Stamp.of(campaign.folder, ["triage.json"])
    )


@lru_cache(maxsize=16)
def _triage(folder: Path, instance: str, _: Stamp) -> Triage:
    return read_triage(folder, instance)


def head(folder: Path) -> dict[str, Any]:
    """What stands above every page of the campaign in `folder`."""
    one = instance_at(folder, is_compared=False)
    config = one.config
    return {
        "instance": one.identity,
        "state": one.state,
        "state_text": state_text(one.state, one.stop_reason),
        "host": None if one.host is None else short(one.host, 60),
        "target": short(config.target),
        "policy": short(config.policy or POLICY_OF_TARGET),
        "strategy": short(config.strategy, 40),
        "seed": config.seed,
        "texts": numbers_of(one.progress, one.is_solvability_tested, one.seconds_since_finding),
        "has_errors": one.progress.failures > 0,
        "batch": one.progress.batch,
    }


@dataclass(frozen=True, slots=True)
class _Standing:
    """What the verdict on a campaign follows from."""

    config: CampaignConfig
    progress: Progress
    is_running: bool
    stop_reason: str | None
    mode_count: int
    has_stable_modes: bool
    probability: FailureProbability
    estimate: Estimate | None
    starts: tuple[int, int] | None

    @classmethod
    def of(cls, campaign: CampaignReader, triage: Triage) -> "_Standing":
        is_running, reason = is_being_written(campaign.folder), campaign.stop_reason()
        modes, progress = triage.modes, campaign.progress()
        return cls(
            campaign.config,
            progress,
            is_running,
            None if is_running else reason,
            0 if modes is None else len(modes.modes),
            modes is not None and modes.is_stable and bool(modes.modes),
            FailureProbability.of_campaigns([progress], campaign.is_solvability_tested),
            estimate_or_problem(campaign)[0],
            campaign.starts() if reason == StopReason.EXHAUSTED.value else None,
        )


def overview(campaign: CampaignReader) -> dict[str, Any]:
    """Verdict, totals and the worst findings."""
    triage, progress = known_triage(campaign), campaign.progress()
    standing = _Standing.of(campaign, triage)
    worst = representatives(campaign, _EXAMPLES) if progress.distinct_findings else []
    return {
        "verdict": verdict(standing),
        "failure": str(standing.probability),
        "examples": [finding_row(campaign, triage, one) for one in worst],
        "modes": [mode_values(campaign, triage, one) for one in mode_summaries(campaign, triage)][:_EXAMPLES],
        "is_triaged": triage.modes is not None,
        "newer": _newer(campaign, triage),
        "commands": next_commands(campaign),
        "config": _settings(campaign),
    }


def modes(campaign: CampaignReader) -> dict[str, Any]:
    """All failure modes."""
    triage = known_triage(campaign)
    found = triage.modes
    return {
        "about": None if found is None else asdict_without(found, "modes"),
        "agreement": "" if found is None else number_text(found.agreement, 2),
        "modes": [mode_values(campaign, triage, one) for one in mode_summaries(campaign, triage)],
        "newer": _newer(campaign, triage),
        "commands": next_commands(campaign),
    }


def mode_values(campaign: CampaignReader, triage: Triage, summary: ModeSummary) -> dict[str, Any]:
    """One failure mode."""
    mode, known = summary.mode, triage.of(summary.mode.representative)
    facts = {
        "findings": f"{len(mode.members):,} from {mode.roots:,} lineage{'s' if mode.roots != 1 else ''}",
        "severity": f"up to {mode.severity:.3g} beyond the threshold" if math.isfinite(mode.severity) else "",
        "share": f"{mode.share:.0%} of random crashes ({mode.share_low:.0%} to {mode.share_high:.0%})"
        if math.isfinite(mode.share)
        else "",
        "robustness": f"{mode.robustness:.0%} of {mode.neighbours:,} near neighbours crash, too"
        if math.isfinite(mode.robustness)
        else "",
        "avoidable": summary.avoidable_text,
        "decided": summary.decided_text,
    }
    return {
        "number": mode.number,
        "kind": short(mode.kind),
        "words": short(mode.words, 300),
        "colour": mode_mark(mode.number)[0],
        "representative": mode.representative,
        "facts": {name: short(text, 300) for name, text in facts.items() if text},
        "avoidance": avoidance_facts(known.avoidance),
        "boundary": boundary_facts(known.boundary),
        "command": replay_command(campaign, f"M{mode.number}"),
        "code": [short(one) for one in code_of(campaign)],
        "media": stored_media(campaign.folder, mode.representative),
    }


def avoidance_facts(known: Avoidance | None) -> dict[str, str]:
    """Whether a crash could be avoided, how, and up to when."""
    if known is None:
        return {}
    how = f": {known.words}" if known.words else ""
    facts = {"avoidable": f"{known.verdict}{how} ({known.episodes:,} episodes)"}
    if known.disturbances:
        facts["disturbed"] = f"{known.survived} of {known.disturbances} small changes of its actions avoid it"
    when = known.standing if known.last_chance is None else f"last chance at step {known.last_chance}"
    facts["decided"] = f"{when}: {known.blamed}" if known.blamed else when
    return {name: short(text, 300) for name, text in facts.items()}


def boundary_facts(known: Boundary | None) -> dict[str, str]:
    """How far a finding is from safe."""
    if known is None or not known.crashes:
        return {}
    if not known.passing:
        return {"from safe": f"not known: everything tried in {known.episodes:,} episodes crashes"}
    changes = [f"{one.dimension} {one.amount:+.4g} {one.unit}".rstrip() for one in known.changes[:3]]
    near = f"{known.distance:.3g} in the unit cube"
    facts = {"from safe": f"{near}: {' or '.join(changes)}" if changes else near}
    if known.no_matter:
        facts["no matter"] = ", ".join(known.no_matter)
    return {name: short(text, 300) for name, text in facts.items()}


def finding_row(campaign: CampaignReader, triage: Triage, finding: Finding) -> dict[str, Any]:
    """One line of a list."""
    return finding_rows(campaign, triage, [finding])[0]


def finding_rows(campaign: CampaignReader, triage: Triage, findings: list[Finding]) -> list[dict[str, Any]]:
    """Lines of a list."""
    wanted = {one.id for one in findings}
    members = () if triage.modes is None else triage.modes.modes
    mode_of = {number: mode.number for mode in members for number in wanted.intersection(mode.members)}
    shown = campaign.dimensions[:_INPUT_COLUMNS]
    return [
        {
            "id": one.id,
            "kind": short(one.kind, 60),
            "step": f"{one.crash_step:,}",
            "return": number_text(one.episode_return),
            "margin": number_text(one.margin, 3),
            "repeats": f"{one.repeats:,}",
            "standing": standing_text(one),
            "execution": f"{one.execution:,}",
            "mode": mode_of.get(one.id),
            "colour": mode_mark(mode_of[one.id])[0] if one.id in mode_of else None,
            "inputs": [value_text(*pair, 4) for pair in zip(shown, one.input.tolist(), strict=False)],
        }
        for one in findings
    ]


def finding_list(campaign: CampaignReader, given: Mapping[str, str]) -> dict[str, Any]:
    """A page of findings."""
    triage = known_triage(campaign)
    page = finding_page(campaign, triage, Query.of(given))
    return {
        "page": page,
        "rows": finding_rows(campaign, triage, [triage.of(one.id).added_to(one) for one in page.findings]),
        "dimensions": [
            {"name": short(one["name"], 40), "unit": short(one["unit"], 20)}
            for one in campaign.dimensions[:_INPUT_COLUMNS]
        ],
        "hidden": max(len(campaign.dimensions) - _INPUT_COLUMNS, 0),
        "mode_numbers": [] if triage.modes is None else [mode.number for mode in triage.modes.modes],
        "kinds": [{"value": kind, "label": short(kind, 60)} for kind in page.kinds],
    }


def one_finding(campaign: CampaignReader, number: int) -> dict[str, Any]:
    """All that is known of a finding."""
    triage = known_triage(campaign)
    known, mode = triage.of(number), triage.mode_of(number)
    finding = known.added_to(campaign.finding(number))
    error = next(iter(campaign.failed_episodes(of_finding=number, most=1)), None)
    last = campaign.last_number("findings") or number
    origin = "a random draw" if finding.parent is None else f"a change of seed {finding.parent:,}"
    facts = {
        "crash": f"{finding.kind} at step {finding.crash_step:,}",
        "standing": standing_text(finding),
        "return": number_text(finding.episode_return, 6),
        "severity": f"{-finding.margin:.4g} beyond the threshold" if math.isfinite(finding.margin) else "",
        "found": f"in episode {finding.execution:,}, after {seconds_text(finding.seconds)}",
        "origin": f"instance {finding.origin}" if finding.origin is not None else origin,
        "lineage": "" if finding.root is None else f"descends from draw {finding.root:,}",
        "repeats": f"{finding.repeats:,} more crashes with the same outcome" if finding.repeats else "",
        "other seeds": luck_text(finding),
        "survived by": finding.survived_by or "",
        "case seed": str(finding.case_seed),
    }
    return {
        "number": number,
        "crash_step": finding.crash_step,
        "kind": short(finding.kind),
        "standing": standing_text(finding),
        "facts": {name: short(text, 300) for name, text in facts.items() if text},
        "mode": None
        if mode is None
        else {"number": mode.number, "words": short(mode.words or mode.kind, 300)},
        "avoidance": avoidance_facts(known.avoidance),
        "last_chance": None if known.avoidance is None else known.avoidance.last_chance,
        "boundary": boundary_facts(known.boundary),
        "inputs": input_table(campaign, finding, known.boundary),
        "error": None if error is None else error_values(campaign, error),
        "command": replay_command(campaign, number),
        "minimize": replay_command(campaign, number).replace("policyfuzz replay", "policyfuzz minimize", 1),
        "code": [short(one) for one in code_of(campaign)],
        "media": stored_media(campaign.folder, number),
        "previous": number - 1 if number > 1 else None,
        "next": number + 1 if number < last else None,
    }


def error_values(campaign: CampaignReader, failed: FailedEpisode) -> dict[str, Any]:
    """An episode that could not be run to its end."""
    return {
        "id": failed.id,
        "kind": short(failed.kind, 40),
        "step": f"{failed.step:,}",
        "summary": short(failed.summary, 300),
        "purpose": short(failed.purpose, 40),
        "finding": failed.finding,
        "text": failed.text[:_LONGEST_TRACEBACK],
        "is_cut": len(failed.text) > _LONGEST_TRACEBACK,
        "command": f"{replay_command(campaign, failed.id)} --error",
    }


def errors(campaign: CampaignReader, page: int) -> dict[str, Any]:
    """Episodes that could not be run, a page of them."""
    total = campaign.last_number("errors") or 0
    pages = max(1, math.ceil(total / PAGE_SIZE))
    page = min(max(page, 1), pages)
    found = campaign.failed_episodes(most=PAGE_SIZE, skip=(page - 1) * PAGE_SIZE)
    return {
        "errors": [error_values(campaign, one) for one in found],
        "total": total,
        "page": page,
        "pages": pages,
        "page_address": lambda number: f"?page={number}",
    }


def workers(campaign: CampaignReader) -> dict[str, Any]:
    """Who runs the episodes, and where the time goes."""
    split = time_split(campaign.progress())
    total, left, parts = sum(split.seconds) or 1.0, 0.0, []
    for place, (name, seconds) in enumerate(zip(split.activities, split.seconds, strict=True), start=1):
        share = seconds / total
        parts.append(
            {
                "name": name,
                "text": f"{seconds_text(seconds)} ({share:.0%})",
                "left": round(100 * left, 3),
                "width": round(100 * share, 3),
                "place": place,
            }
        )
        left += share
    return {"split": parts}


def coverage(campaign: CampaignReader) -> dict[str, Any]:
    """What the campaign has covered, if that was measured."""
    known = coverage_of(campaign)
    if known is None:
        return {"commands": next_commands(campaign), "known": None, "rows": []}
    rows = [
        {
            "name": short(one.name, 60),
            "episodes": f"{one.used:,}",
            "crashes": f"{one.crashes:,}",
            "behaviours": f"{one.behaviours:,} ({known.share(one):.0%})",
            "cells": f"{one.cells:,}",
            "area": number_text(one.area),
        }
        for one in known.all
    ]
    facts = {
        "compared": f"the first {known.episodes:,} episodes of each",
        "episodes": "all that were run" if known.is_every_episode else "those that the campaign file knows",
        "reference": f"{known.reference:,} behaviours of all together, more than {known.radius:g} apart",
        "cells": f"of states along {known.directions} directions, with side {known.cell:g}",
        "unit": "standard deviations of random sampling",
    }
    return {"commands": next_commands(campaign), "known": facts, "rows": rows}


def figure_coverage(campaign: CampaignReader) -> dict[str, Any]:
    """Curves and visited states of all campaigns that were compared; nothing if that was not measured."""
    known = coverage_of(campaign)
    if known is None:
        return {"campaigns": []}
    axes = [
        f"{name}, {share:.0%} of the variance"
        for name, share in zip(known.axes, known.explained, strict=False)
    ]
    return {"campaigns": list(known.all), "axes": axes, "reference": known.reference}


def figure_discovery(campaign: CampaignReader) -> Any:
    """The discovery curve."""
    return discovery(campaign)


def figure_maps(campaign: CampaignReader) -> dict[str, Any]:
    """Maps of inputs and behaviours."""
    sample = sample_findings(campaign, known_triage(campaign))
    numbers = sorted({int(one) for one in sample.modes})
    return {
        "inputs": input_map(campaign, sample),
        "behaviours": behaviour_map(sample),
        "colours": {str(number): mode_mark(number)[0] for number in numbers if number},
    }


def figure_histograms(campaign: CampaignReader) -> Any:
    """How the findings are spread."""
    return histograms(sample_findings(campaign, known_triage(campaign)))


def asdict_without(record: Any, name: str) -> dict[str, Any]:
    """The fields of `record` but the one called `name`."""
    return {key: value for key, value in asdict(record).items() if key != name}


def _newer(campaign: CampaignReader, triage: Triage) -> int:
    """Findings that triage has not seen."""
    return 0 if triage.modes is None else max(campaign.progress().findings - triage.modes.findings, 0)


def _settings(campaign: CampaignReader) -> dict[str, str]:
    """How the campaign was set up."""
    config, about = campaign.config, campaign.about
    values = {
        "target": config.target,
        "policy": config.policy or POLICY_OF_TARGET,
        "strategy": config.strategy,
        "seed": config.seed,
        "folder": campaign.folder,
        "policy SHA-256": config.policy_sha256,
        "code SHA-256": config.code_sha256,
        "references": ", ".join(config.references.splitlines()),
        "policyfuzz": about.get("version.policyfuzz", ""),
    }
    return {name: short(value, 300) for name, value in values.items() if str(value)}


def not_there(error: CampaignError | OSError) -> str:
    """What is wrong with a campaign, in a line."""
    return str(error).splitlines()[0]
