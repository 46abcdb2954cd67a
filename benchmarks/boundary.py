"""Boundaries and rules of findings: how near, how many episodes, and does a rule hold on further draws."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.measurement import Track, progress
from policyfuzz.campaign.launch import launch
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import FOLDER, as_json
from policyfuzz.core.errors import unknown_name
from policyfuzz.core.inputs import SEED_END
from policyfuzz.core.settings import Budget, CampaignOptions
from policyfuzz.core.target import Runner, Target
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Finding
from policyfuzz.store.triage_records import Rule
from policyfuzz.targets.registry import load_target
from policyfuzz.triage.boundary import EPISODES, find_boundary
from policyfuzz.triage.neighbourhood import Neighbourhood
from policyfuzz.triage.rays import Ray, advance, ray_towards
from policyfuzz.triage.rules import MOST_DIMENSIONS, find_rule, other_findings

#: Target to its name, its policy and the episodes of the campaign that findings come from.
TARGETS = {
    "acasxu": ("acasxu", None, 40_000),
    "coopnavi": ("coopnavi", None, 40_000),
    "bipedal": ("bipedal", None, 2_500),
    "lunarlander": ("gym:LunarLander-v3:bounds=wide", "lunarlander/networks.npz", 1_500),
}
#: Draws from a rule that its own check never saw.
_FURTHER_DRAWS = 200
#: Draws that are tried for each one that may be run.
_TRIES = 50


@dataclass(frozen=True, slots=True)
class Pairs:
    """Boundaries of the findings of one target, beside those of a straight line to a random input."""

    target: str
    findings: int
    found: float  #: share with both sides verified
    verified: float  #: share of these whose sides, and all changes, are as said when they are run again
    episodes: float  #: median
    distance: float  #: median
    gap: float  #: median of gap / distance
    dimensions: int
    changes: float  #: mean number of dimensions with a change that helps alone
    no_matter: float  #: mean number
    line_found: float
    line_episodes: float
    line_distance: float
    nearer: float  #: share of findings whose pair is nearer than that of the line
    ratio: float  #: median of distance / distance of the line


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules around the findings of one target."""

    target: str
    findings: int
    rules: int
    episodes: float  #: median of all searches
    precision: float  #: mean, by the checks of the rules themselves
    further: float  #: mean, on draws that those never saw
    worst: float  #: the lowest of these
    below: int  #: rules with less than 0.8 of them
    coverage: float  #: mean
    reasons: dict[str, int]  #: why there was none


@click.command("boundary")
@click.option("--target", "targets", multiple=True, help="May be repeated.  [default: all]")
@click.option("--findings", default=200, show_default=True, help="Of each target, as far as there are.")
@click.option("--rules", default=50, show_default=True, help="Findings of each target to look for rules of.")
@click.option("--folder", type=FOLDER, default=Path("campaigns/boundary"), help="Of campaigns; used again.")
@as_json
def command(targets: tuple[str, ...], findings: int, rules: int, folder: Path, is_json: bool) -> None:
    """Measure boundaries and rules of findings (an hour).

    Findings are drawn from all confirmed ones of a campaign. The baseline is a bisection along the straight
    line to the nearest random input that passes, with as many episodes.
    """
    for name in targets:
        if name not in TARGETS:
            raise unknown_name("target of this benchmark", name, TARGETS)
    pairs, boxes = [], []
    with progress() as track:
        for name in targets or TARGETS:
            target, campaign = _campaign(name, folder)
            chosen = _chosen(campaign, max(findings, rules))
            pairs.append(_measure_pairs(name, target, chosen[:findings], track))
            boxes.append(_measure_rules(name, target, campaign, chosen[:rules], track))
    if is_json:
        print_json({"pairs": [asdict(one) for one in pairs], "rules": [asdict(one) for one in boxes]})
    else:
        results().print(_pairs_table(pairs))
        results().print(_rules_table(boxes))


def _campaign(name: str, folder: Path) -> tuple[Target, CampaignReader]:
    """The target called `name` and a campaign on it, which is run unless it is there."""
    text, policy, episodes = TARGETS[name]
    target = load_target(text, policy and f"npz:{files('policyfuzz.models') / policy}")
    if not (folder / name / "campaign.sqlite").exists():
        options = CampaignOptions(seed=1)
        launch(target, Budget(executions=episodes), options, folder=folder / name, force=True)
    return target, CampaignReader(folder / name)


def _chosen(campaign: CampaignReader, count: int) -> list[Finding]:
    numbers = campaign.numbers("findings", "status = ?", (CONFIRMED,))
    chosen = np.random.default_rng(0).permutation(numbers)[:count]
    return [campaign.finding(int(number)) for number in chosen]


@dataclass(frozen=True, slots=True)
class _Pair:
    """The boundary of one finding, and that of a straight line; distances are NaN without a pair."""

    is_true: bool  #: both sides and all changes are as said when they are run again
    episodes: int
    distance: float
    gap: float
    changes: int
    no_matter: int
    line_distance: float
    line_episodes: int


def _measure_pairs(name: str, target: Target, findings: Sequence[Finding], track: Track) -> Pairs:
    run = Runner(target)
    pairs = [_pair(target, run, finding) for finding in track(findings, f"{name}: boundaries")]
    distances, lines = (
        np.array([getattr(one, what) for one in pairs], np.float64) for what in ("distance", "line_distance")
    )
    both = np.isfinite(distances) & np.isfinite(lines)
    return Pairs(
        name,
        len(pairs),
        float(np.isfinite(distances).mean()),
        float(np.mean([one.is_true for one in pairs if np.isfinite(one.distance)])),
        float(np.median([one.episodes for one in pairs])),
        float(np.nanmedian(distances)),
        float(np.nanmedian([one.gap / one.distance for one in pairs])),
        len(target.inputs.dimensions),
        float(np.mean([one.changes for one in pairs])),
        float(np.mean([one.no_matter for one in pairs])),
        float(np.isfinite(lines).mean()),
        float(np.median([one.line_episodes for one in pairs])),
        float(np.nanmedian(lines)),
        float((distances[both] < lines[both]).mean()),
        float(np.median(distances[both] / lines[both])),
    )


def _pair(target: Target, run: Runner, finding: Finding) -> _Pair:
    found = find_boundary(target, run, finding.input, finding.case_seed)
    changed = np.repeat(finding.input[None], len(found.changes), axis=0)
    for row, change in zip(changed, found.changes, strict=True):
        row[target.inputs.names.index(change.dimension)] = change.value
    is_true = False
    if found.passing:
        again = np.vstack([found.crashing, found.passing, changed])
        crashed = run(again, np.full(len(again), finding.case_seed, np.uint64)).crashed.tolist()
        is_true = crashed == [True] + [False] * (len(again) - 1)
    return _Pair(
        is_true,
        found.episodes,
        found.distance,
        found.gap,
        len(found.changes),
        len(found.no_matter),
        *_straight_line(target, run, finding),
    )


def _straight_line(target: Target, run: Runner, finding: Finding) -> tuple[float, int]:
    """Distance of a pair on the line to the nearest random input that passes, and its episodes."""
    around = Neighbourhood(target, run, finding.input, finding.case_seed, EPISODES)
    around.crashes(around.row[None])
    for other in around.draws(around.generator())[: around.left]:
        if around.crashes(other[None]) == [False]:
            return _bisected(around, other), around.episodes
    return np.nan, around.episodes


def _bisected(around: Neighbourhood, other: NDArray[np.float64]) -> float:
    (ray,) = ray_towards(around, other)
    ray.answers[len(ray.inputs) - 1] = False
    while advance(around, [ray], 0):
        pass
    while around.left and _is_wide(ray):
        fine = ray.sharpened(around, 16)
        if not advance(around, [fine], 0):
            break
        while advance(around, [fine], 0):
            pass
        ray = fine
    return ray.high_distance


def _is_wide(ray: Ray) -> bool:
    return ray.high_distance - ray.low_distance > 0.05 * ray.high_distance


def _measure_rules(
    name: str, target: Target, campaign: CampaignReader, findings: Sequence[Finding], track: Track
) -> Rules:
    run = Runner(target)
    if len(target.inputs.dimensions) > MOST_DIMENSIONS:
        findings = findings[:1]  # none of them is offered one
    episodes, reasons = [], dict[str, int]()
    rules, shares = list[Rule](), list[float]()
    for finding in track(findings, f"{name}: rules"):
        others = other_findings(campaign, finding)
        found = find_rule(target, run, finding.input, finding.case_seed, others)
        episodes.append(found.episodes)
        if found.rule is None:
            reason = "".join(one for one in found.reason if not one.isdigit())
            reasons[reason] = reasons.get(reason, 0) + 1
            continue
        rules.append(found.rule)
        shares.append(_further_precision(target, run, finding, found.rule))
    return Rules(
        name,
        len(findings),
        len(rules),
        float(np.median(episodes)),
        float(np.mean([one.precision for one in rules])) if rules else np.nan,
        float(np.mean(shares)) if rules else np.nan,
        float(np.min(shares)) if rules else np.nan,
        sum(share < 0.8 for share in shares),
        float(np.mean([one.coverage for one in rules])) if rules else np.nan,
        reasons,
    )


def _further_precision(target: Target, run: Runner, finding: Finding, rule: Rule) -> float:
    """Share of inputs that crash, of draws from `rule` with a generator that its search never used."""
    rng = np.random.default_rng([finding.id, 2])
    around = Neighbourhood(target, run, finding.input, finding.case_seed, _FURTHER_DRAWS)
    kept = []
    for _ in range(_TRIES):
        rows = _within(target, rule, rng)
        kept += list(rows[around.allowed(rows)])
        if len(kept) >= _FURTHER_DRAWS:
            break
    rows = np.array(kept[:_FURTHER_DRAWS])
    seeds = rng.integers(0, SEED_END, len(rows), dtype=np.uint64)
    answers = around.crashes(rows, None if target.seed_is_situation else seeds)
    return sum(crashes is True for crashes in answers) / len(answers)


def _within(target: Target, rule: Rule, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draws (n, d) from the box of `rule`."""
    columns = []
    for dimension, low, high in zip(target.inputs.dimensions, rule.low, rule.high, strict=True):
        if dimension.kind in ("integer", "choice", "seed"):
            columns.append(rng.integers(int(low), int(high), _FURTHER_DRAWS, endpoint=True).astype(float))
        else:
            values = rng.uniform(low, high, _FURTHER_DRAWS)
            columns.append(
                dimension.from_unit(dimension.to_unit(values)) if dimension.is_periodic else values
            )
    return np.column_stack(columns)


def _pairs_table(pairs: Sequence[Pairs]) -> Table:
    heads = (
        "findings",
        "pair",
        "holds",
        "episodes",
        "distance",
        "gap /\ndistance",
        "changes of\ndimensions",
        "no matter",
        "line:\npair",
        "episodes",
        "distance",
        "ours is\nnearer",
        "ratio",
    )
    table = _table("target", *heads)
    for one in pairs:
        table.add_row(
            one.target,
            f"{one.findings:,}",
            f"{one.found:.1%}",
            f"{one.verified:.1%}",
            f"{one.episodes:.0f}",
            f"{one.distance:.2g}",
            f"{one.gap:.3f}",
            f"{one.changes:.1f} of {one.dimensions}",
            f"{one.no_matter:.1f}",
            f"{one.line_found:.1%}",
            f"{one.line_episodes:.0f}",
            f"{one.line_distance:.2g}",
            f"{one.nearer:.0%}",
            f"{one.ratio:.2f}",
        )
    return table


def _rules_table(rules: Sequence[Rules]) -> Table:
    heads = (
        "findings",
        "rules",
        "episodes",
        "precision\nof checks",
        "of further\ndraws",
        "worst",
        "below 0.8",
        "coverage",
    )
    table = _table("target", *heads, "why none")
    for one in rules:
        numbers = [one.precision, one.further, one.worst]
        table.add_row(
            one.target,
            f"{one.findings:,}",
            f"{one.rules:,}",
            f"{one.episodes:.0f}",
            *("" if np.isnan(value) else f"{value:.3f}" for value in numbers),
            f"{one.below}",
            "" if np.isnan(one.coverage) else f"{one.coverage:.2%}",
            "; ".join(f"{count} {reason}" for reason, count in one.reasons.items()),
        )
    return table


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left")
    return table
