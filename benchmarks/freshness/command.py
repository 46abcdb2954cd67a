"""python -m benchmarks freshness: prints how well freshness tells crashes, or what a search gains by it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import click
import numpy as np
from rich.table import Table

from benchmarks.freshness.ablation import RADIUS, VARIANTS, Count, Variant, count
from benchmarks.freshness.scores import SCORES, Areas, measure
from benchmarks.measurement import progress
from benchmarks.versus.results import Mean
from benchmarks.versus.targets import Entry, find_entry
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import UsageError, unknown_name

_SCORED = ("acasxu", "coopnavi", "ripple-10")
_SEARCHED = ("acasxu", "coopnavi")


@click.command("freshness")
@click.option("--rq2", is_flag=True, help="Compare searches with freshness and without instead.")
@click.option("--target", "targets", multiple=True, help="As in versus; may be repeated.  [default: some]")
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    help="That takes part in --rq2; may be repeated.  [default: all]",
)
@click.option("--episodes", type=int, help="Of each search.  [default: as in versus]")
@click.option("--seeds", default=5, show_default=True, help="Searches of each kind.")
@as_json
def command(
    rq2: bool,
    targets: tuple[str, ...],
    strategies: tuple[str, ...],
    episodes: int | None,
    seeds: int,
    is_json: bool,
) -> None:
    """Measure whether crashes are fresher than other episodes, by both scores (minutes).

    Only random episodes are learnt. A number is the chance that a crash is fresher than an episode of the
    other kind, 0.5 if freshness says nothing; the mean over seeds with its 95 % bootstrap interval.
    With --rq2: how many findings, and independent ones, the published method makes with freshness and
    without.
    """
    if seeds < 1:
        raise UsageError(f"seeds is {seeds}, expected 1 or more")
    if episodes is not None and episodes < 10:
        raise UsageError(f"episodes is {episodes}, expected 10 or more")
    for name in strategies:
        if name not in {variant.strategy for variant in VARIANTS}:
            raise unknown_name("strategy of the comparison", name, [one.strategy for one in VARIANTS])
    variants = [one for one in VARIANTS if not strategies or one.strategy in strategies]
    entries = [find_entry(name) for name in targets or (_SEARCHED if rq2 else _SCORED)]
    if episodes is not None:
        entries = [entry.with_episodes(episodes) for entry in entries]
    if rq2:
        counts = _count(entries, variants, seeds)
        _print([asdict(one) for one in counts], _count_table(counts), is_json)
    else:
        areas = _measure(entries, seeds)
        _print([asdict(one) for one in areas], _area_table(areas), is_json)


def _measure(entries: Sequence[Entry], seeds: int) -> list[Areas]:
    jobs = [(entry, seed) for entry in entries for seed in range(seeds)]
    loaded = {entry.label: entry.load() for entry in entries}
    with progress() as track:
        rows = [
            measure(entry.label, loaded[entry.label], entry.episodes, seed)
            for entry, seed in track(jobs, "searches")
        ]
    return [one for row in rows for one in row]


def _count(entries: Sequence[Entry], variants: Sequence[Variant], seeds: int) -> list[Count]:
    jobs = [(entry, variant, seed) for entry in entries for variant in variants for seed in range(seeds)]
    loaded = {entry.label: entry.load() for entry in entries}
    with progress() as track:
        return [
            count(entry.label, loaded[entry.label], variant, entry.episodes, seed)
            for entry, variant, seed in track(jobs, "searches")
        ]


def _print(records: list[dict[str, object]], table: Table, is_json: bool) -> None:
    if is_json:
        print_json(records)
    else:
        results().print(table)


def _area_table(areas: Sequence[Areas]) -> Table:
    table = _table(
        "target", "score", "crashes", "fresher than\na random episode", "fresher than\na near-miss"
    )
    for label in dict.fromkeys(one.target for one in areas):
        for score in SCORES:
            rows = [one for one in areas if (one.target, one.score) == (label, score)]
            crashes = f"{np.mean([one.crashes for one in rows]):,.0f}"
            random, near = (one.random for one in rows), (one.near_miss for one in rows)
            table.add_row(label, score, crashes, _interval(random), _interval(near))
    return table


def _count_table(counts: Sequence[Count]) -> Table:
    heads = (
        "findings",
        f"independent\n(radius {RADIUS:g})",
        "fresh",
        "corpus empty\nafter",
        "found\nby then",
    )
    table = _table("target", "strategy", *heads)
    for label, variant in dict.fromkeys((one.target, one.variant) for one in counts):
        rows = [one for one in counts if (one.target, one.variant) == (label, variant)]
        emptied = [one.emptied for one in rows if one.emptied is not None]
        after = f"{np.mean(emptied):,.0f} ({len(emptied)} of {len(rows)})" if emptied else ""
        by_then = (one.findings_before for one in rows if one.emptied is not None)
        fresh = np.mean([one.fresh for one in rows])
        table.add_row(
            label,
            variant,
            _interval((one.findings for one in rows), ".1f"),
            _interval((one.independent for one in rows), ".1f"),
            "" if np.isnan(fresh) else f"{fresh:.0%}",
            after,
            _interval(by_then, ".1f") if emptied else "",
        )
    return table


def _interval(values: Iterable[float], form: str = ".3f") -> str:
    """The mean of `values` without NaN, and its bootstrap interval."""
    known = np.array([value for value in values if not np.isnan(value)], np.float64)
    if len(known) == 0:
        return "no crashes"
    mean = Mean.of(known)
    return f"{mean.value:{form}} ({mean.low:{form}} to {mean.high:{form}})"


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number < 2 else "right")
    return table
