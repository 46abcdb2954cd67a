"""Sections of the page that are about campaigns: what they found, their time, and their curves (RQ1, RQ2)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.paper.figures import draw_curves
from benchmarks.paper.markdown import NOT_RUN, beside, listed, number, table
from benchmarks.paper.published import FUZZER_HOURS
from benchmarks.paper.results import Result
from benchmarks.paper.scenarios import STRATEGIES, base_name
from benchmarks.paper.selection import Selection
from benchmarks.table import PUBLISHED

#: The two searches of the second research question.
WITH, WITHOUT = "mdpfuzz-published", "reward-published"


def results_section(selection: Selection, _page: Path) -> str:
    """The paper's table of results."""
    heads = ["", "paper: crashes", *(f"`{name}`" for name in STRATEGIES), "random samples that crash"]
    rows = []
    for label in selection.labels:
        run = selection.campaigns.get(label)
        paper = PUBLISHED[base_name(label)]
        row = [f"`{label}`", f"{paper.crashes} in {paper.mutations:,}"]
        if run is None:
            rows.append([*row, NOT_RUN])
            continue
        row[0] += f", {selection.episodes(label):,} episodes"
        rows.append([*row, *(_counts(run.get(name)) for name in STRATEGIES), _base_rate(run)])
    return (
        "Confirmed crashes from valid and solvable inputs; in brackets how many of these are distinct, and"
        f" from how many random draws they descend.\n\n{table(heads, rows)}"
    )


def _counts(results: Sequence[Result] | None) -> str:
    if not results:
        return NOT_RUN
    crashes, distinct, lineages = (
        number(np.mean([one.found[name] for one in results])) for name in ("crashes", "distinct", "lineages")
    )
    return f"**{crashes}** ({distinct}; {lineages})"


def _base_rate(run: Mapping[str, Sequence[Result]]) -> str:
    """How often a draw crashes, over all samples of `random`."""
    if "random" not in run:
        return ""
    samples = sum(one.found["samples"] for one in run["random"])
    crashes = sum(one.found["sample_crashes"] for one in run["random"])
    return f"{1000 * crashes / samples:.2f} of 1,000" if samples else ""


def time_section(selection: Selection, _page: Path) -> str:
    """The paper's figure of where the time goes."""
    heads = ["", "paper: in the fuzzer", "ours, `mdpfuzz-published`", "`mdpfuzz`", "`default`"]
    heads += [f"CPU seconds for 1,000 episodes, `{WITH}`", "`default`"]
    rows = []
    for label, run in _run_campaigns(selection):
        name = base_name(label)
        shares = [_fuzzer_share(run.get(strategy)) for strategy in (WITH, "mdpfuzz", "default")]
        costs = [_cost(run.get(strategy)) for strategy in (WITH, "default")]
        paper = f"{FUZZER_HOURS[name]:.2f} of 12 hours, {PUBLISHED[name].fuzzer_share:.0%}"
        rows.append([f"`{label}`", paper, *shares, *costs])
    return (
        "Share of the time that is not spent on running episodes and on drawing valid inputs; in brackets"
        f" that of the density alone.\n\n{table(heads, rows)}"
    )


def _fuzzer_share(results: Sequence[Result] | None) -> str:
    if not results:
        return NOT_RUN
    shares = [one.costs["shares"] for one in results]
    density = np.mean([one["density"] for one in shares])
    fuzzer = np.mean([one["density"] + one["search"] + one["store"] for one in shares])
    return f"{fuzzer:.0%} ({density:.0%})"


def _cost(results: Sequence[Result] | None) -> str:
    # the seconds of a campaign that was killed are those of its last start only
    whole = [one for one in results or () if not one.costs["is_resumed"]]
    if not whole:
        return "not known"
    seconds = sum(one.costs["cpu_seconds"] for one in whole)
    cost = 1000 * seconds / sum(one.found["executions"] for one in whole)
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}"


def curves_section(selection: Selection, page: Path) -> str:
    """RQ1 and RQ2: crashes over episodes."""
    if not selection.campaigns:
        return "Not run."
    picture = beside(page, "curves")
    ordered = dict(_run_campaigns(selection))
    draw_curves(ordered, picture)
    heads = [
        "",
        f"with freshness (`{WITH}`)",
        f"without (`{WITHOUT}`)",
        "difference",
        "`mdpfuzz`",
        "`random`",
    ]
    rows = []
    for label, run in ordered.items():
        if WITH not in run or WITHOUT not in run:
            continue
        late = {name: _late(run.get(name)) for name in (WITH, WITHOUT, "mdpfuzz", "random")}
        difference = float(np.mean(late[WITH]) - np.mean(late[WITHOUT]))
        cells = [listed(late[name]) for name in (WITH, WITHOUT)]
        others = [listed(late[name]) or NOT_RUN for name in ("mdpfuzz", "random")]
        rows.append([f"`{label}`", *cells, f"{difference:+.4g}", *others])
    return "\n\n".join(
        [
            f"![Crashes over episodes, with freshness and without]({picture.name})",
            "The paper finds more crashes with freshness than without on all five models; on ACAS Xu 37 more"
            " in the last eight of twelve hours. Crashes that we found in the last two thirds of the"
            " episodes, for each seed:",
            table(heads, rows),
        ]
    )


def _late(results: Sequence[Result] | None) -> list[int]:
    """Crashes of each seed in the last two thirds of the episodes."""
    late = []
    for one in results or ():
        curve = one.found["curves"]["crashes"]
        late.append(int(curve[-1] - curve[len(curve) // 3]))
    return late


def _run_campaigns(selection: Selection) -> list[tuple[str, Mapping[str, Sequence[Result]]]]:
    return [(label, selection.campaigns[label]) for label in selection.labels if label in selection.campaigns]
