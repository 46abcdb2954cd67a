"""The page of results: what the paper says, what we found, and where they differ."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.paper import looks
from benchmarks.paper.figures import draw_curves, draw_roc, shrink
from benchmarks.paper.parts import GENERAL
from benchmarks.paper.published import DETECTOR_AREAS, FRESHNESS_COSTS, FUZZER_HOURS, REPAIR
from benchmarks.paper.results import Result
from benchmarks.paper.scenarios import PUBLIC, STRATEGIES, base_name
from benchmarks.paper.selection import Selection, select
from benchmarks.table import PUBLISHED
from policyfuzz.analysis.inconsistent import PAPER_CRASH_RATES, SHARES
from policyfuzz.core.errors import unknown_name
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.report.activations_figure import draw_activations
from policyfuzz.report.coverage_figure import draw_coverage
from policyfuzz.store.activations_file import (
    ACTIVATIONS,
    CRASH,
    MUTATED,
    NEAR_MISS,
    NORMAL,
    OBSERVATIONS,
    ActivationMap,
)
from policyfuzz.store.monitor_record import MethodRecord, MonitorRecord

#: The two searches of the second research question.
WITH, WITHOUT = "mdpfuzz-published", "reward-published"
_NOT_RUN = "not run"
#: Method and input of the paper's detector.
PAPER_DETECTOR = ("mean-shift", "activations")
#: Classes of episodes that are told apart.
_PAIRS = ((CRASH, NORMAL), (CRASH, NEAR_MISS), (CRASH, MUTATED), (MUTATED, NORMAL))
#: Heading of a section of the notes.
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
#: What a section is called in the notes, its title, and what writes it.
Section = tuple[str, str, Callable[[Selection, Path], str]]


def write_page(results: Sequence[Result], page: Path, notes: str = "") -> None:
    """Write the page and its pictures from `results` alone; `notes` say why, section by section."""
    selection = select(results)
    comments = _comments(notes)
    parts = [_introduction(selection), comments.get("", "")]
    for name, title, write in SECTIONS:
        parts += [f"## {title}", write(selection, page), comments.get(name, "")]
    parts += ["## How it was run", _bullets(_circumstances(selection))]
    make_folder_of(page)
    with whole_file(page) as unfinished:
        unfinished.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def _comments(notes: str) -> dict[str, str]:
    """Notes by section; those before the first heading belong to the introduction."""
    first, *rest = _HEADING.split(notes)
    sections = {name.strip(): text.strip() for name, text in zip(rest[::2], rest[1::2], strict=True)}
    known = [name for name, _, _ in SECTIONS]
    for name in sections:
        if name not in known:
            raise unknown_name("section of the page", name, known)
    return {"": first.strip()} | sections


def _introduction(selection: Selection) -> str:
    rows = []
    for label in selection.labels:
        paper = PUBLISHED[base_name(label)]
        run = selection.campaigns.get(label)
        rows.append(
            [
                f"`{label}`",
                paper.model,
                _model(label),
                f"{paper.mutations:,}",
                f"{selection.episodes(label):,}" if run else _NOT_RUN,
                str(max(map(len, run.values()))) if run else "",
            ]
        )
    heads = ["scenario", "the paper's model", "ours", "mutations in 12 hours", "episodes here", "seeds"]
    return "\n\n".join(
        [
            "# The paper's results beside ours",
            "Every table and figure of the paper that PolicyFuzz implements (Pang, Yuan and Wang: MDPFuzz,"
            " ISSTA 2022), run again by `python -m benchmarks paper`, which also writes this page from its"
            " result files ([benchmarks.md](benchmarks.md#python-m-benchmarks-paper)). Where the paper's"
            " method is meant, it is run as the authors' code has it: `mdpfuzz-published` with freshness and"
            " `reward-published` without. `mdpfuzz` (the pseudocode with sound numbers), the default strategy"
            " of PolicyFuzz and plain random sampling stand beside them"
            " ([strategies.md](strategies.md#the-published-method-pseudocode-and-code)).",
            _table(heads, rows),
        ]
    )


def _model(label: str) -> str:
    return {
        "acasxu" + PUBLIC: "the same public networks",
        "acasxu": "our own networks",
        "coopnavi": "our own MADDPG actors",
        "bipedal": "our own distilled network",
        "driving-rl": "MetaDrive's PPO expert",
        "driving-il": "our own clone, in MetaDrive",
    }[label]


def _results(selection: Selection, _page: Path) -> str:
    """The paper's table of results."""
    heads = ["", "paper: crashes", *(f"`{name}`" for name in STRATEGIES), "random samples that crash"]
    rows = []
    for label in selection.labels:
        run = selection.campaigns.get(label)
        paper = PUBLISHED[base_name(label)]
        row = [f"`{label}`", f"{paper.crashes} in {paper.mutations:,}"]
        if run is None:
            rows.append([*row, _NOT_RUN])
            continue
        row[0] += f", {selection.episodes(label):,} episodes"
        rows.append([*row, *(_counts(run.get(name)) for name in STRATEGIES), _base_rate(run)])
    return (
        "Confirmed crashes from valid and solvable inputs; in brackets how many of these are distinct, and"
        f" from how many random draws they descend.\n\n{_table(heads, rows)}"
    )


def _counts(results: Sequence[Result] | None) -> str:
    if not results:
        return _NOT_RUN
    crashes, distinct, lineages = (
        _number(np.mean([one.found[name] for one in results])) for name in ("crashes", "distinct", "lineages")
    )
    return f"**{crashes}** ({distinct}; {lineages})"


def _base_rate(run: Mapping[str, Sequence[Result]]) -> str:
    """How often a draw crashes, over all samples of `random`."""
    if "random" not in run:
        return ""
    samples = sum(one.found["samples"] for one in run["random"])
    crashes = sum(one.found["sample_crashes"] for one in run["random"])
    return f"{1000 * crashes / samples:.2f} of 1,000" if samples else ""


def _time(selection: Selection, _page: Path) -> str:
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
        f" that of the density alone.\n\n{_table(heads, rows)}"
    )


def _fuzzer_share(results: Sequence[Result] | None) -> str:
    if not results:
        return _NOT_RUN
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
    return f"{1000 * seconds / sum(one.found['executions'] for one in whole):.3g}"


def _curves(selection: Selection, page: Path) -> str:
    """RQ1 and RQ2: crashes over episodes."""
    if not selection.campaigns:
        return "Not run."
    picture = _beside(page, "curves")
    ordered = dict(_run_campaigns(selection))
    draw_curves(ordered, picture)
    heads = ["", f"with freshness (`{WITH}`)", f"without (`{WITHOUT}`)", "difference", "`mdpfuzz`", "`random`"]
    rows = []
    for label, run in ordered.items():
        if WITH not in run or WITHOUT not in run:
            continue
        late = {name: _late(run.get(name)) for name in (WITH, WITHOUT, "mdpfuzz", "random")}
        difference = float(np.mean(late[WITH]) - np.mean(late[WITHOUT]))
        cells = [_list(late[name]) for name in (WITH, WITHOUT)]
        others = [_list(late[name]) or _NOT_RUN for name in ("mdpfuzz", "random")]
        rows.append([f"`{label}`", *cells, f"{difference:+.4g}", *others])
    return "\n\n".join(
        [
            f"![Crashes over episodes, with freshness and without]({picture.name})",
            "The paper finds more crashes with freshness than without on all five models; on ACAS Xu 37 more"
            " in the last eight of twelve hours. Crashes that we found in the last two thirds of the"
            " episodes, for each seed:",
            _table(heads, rows),
        ]
    )


def _late(results: Sequence[Result] | None) -> list[int]:
    """Crashes of each seed in the last two thirds of the episodes."""
    late = []
    for one in results or ():
        curve = one.found["curves"]["crashes"]
        late.append(int(curve[-1] - curve[len(curve) // 3]))
    return late


def _coverage(selection: Selection, page: Path) -> str:
    """RQ2: the areas that were covered."""
    parts = [
        "The paper plots the mixtures that freshness learnt, with and without it, on the same axes, and reads"
        " a larger covered area from the picture; it gives no number. We fit the same kind of mixture to the"
        " states of all episodes, and also count cells of states and reference behaviours. Share is that of"
        " all behaviours that any of these campaigns or random sampling showed; area is that of the"
        " mixture's ellipses, in squared standard deviations of random states."
    ]
    heads = ["", "", "behaviours", "share", "cells", "area"]
    rows = []
    pictures = []
    for label in selection.labels:
        result = selection.look(label, "coverage")
        if result is None:
            rows.append([f"`{label}`", _NOT_RUN])
            continue
        found = looks.stored_coverage(result.found)
        picture = _beside(page, f"coverage-{label}")
        draw_coverage(found, picture)
        shrink(picture)
        pictures.append(f"![What campaigns on {label} covered]({picture.name})")
        for position, one in enumerate(found.all):
            name = f"`{label}`, {found.episodes:,} episodes" if position == 0 else ""
            numbers = [f"{one.behaviours:,}", f"{found.share(one):.0%}", f"{one.cells:,}", f"{one.area:.3g}"]
            rows.append([name, one.name, *numbers])
    return "\n\n".join([*parts, _table(heads, rows), *pictures])


def _activations(selection: Selection, page: Path) -> str:
    """RQ3: the t-SNE picture of activations."""
    parts = [
        "The paper projects hidden activations of crash, normal and randomly mutated sequences with t-SNE, and"
        " sees that crashes lie apart while mutated ones mix with normal ones. Numbers here say how well the"
        " nearest episodes of *other* lineages tell one class from another (area under the ROC curve: 1 is"
        " always, 0.5 chance), for activations and, in brackets, for observations. Each episode is the mean"
        " over the last decisions before its crash, or at the same steps."
    ]
    known = {label: selection.look(label, "activations") for label in selection.labels}
    rows, pictures = [], []
    for label, result in known.items():
        if result is None:
            continue
        if "refused" in result.found:
            rows.append([f"`{label}`", f"`{result.found['campaign']}`", result.found["refused"]])
            continue
        found = looks.stored_map(result.found)
        picture = _beside(page, f"activations-{label}")
        draw_activations(found, picture)
        shrink(picture)
        pictures.append(f"![Inside the policy of {label}]({picture.name})")
        crashes = f"{found.count(CRASH)} of {max(one.lineages for one in found.separations)} lineages"
        cells = [_separated(found, *pair) for pair in _PAIRS]
        rows.append([f"`{label}`", f"`{result.found['campaign']}`", crashes, *cells])
    heads = ["", "campaign", "crashes", *(f"{one} / {other}" for one, other in _PAIRS)]
    return "\n\n".join([*parts, _table(heads, rows) + _left_out(known), *pictures])


def _separated(found: ActivationMap, positive: str, negative: str) -> str:
    """How well two classes are told apart by activations, and in brackets by observations."""
    by_table = {
        one.of: one for one in found.separations if (one.positive, one.negative) == (positive, negative)
    }
    texts = [_area(by_table[of].auc) for of in (ACTIVATIONS, OBSERVATIONS) if of in by_table]
    return f"{texts[0]} ({texts[1]})" if len(texts) > 1 else ", ".join(texts)


def _detector(selection: Selection, page: Path) -> str:
    """RQ4: the ROC curves of the detector."""
    known = {label: selection.look(label, "detector") for label in selection.labels}
    rows, records = [], {}
    for label, result in known.items():
        if result is None:
            continue
        row = [f"`{label}`", f"{DETECTOR_AREAS[base_name(label)]:.2f}", f"`{result.found['campaign']}`"]
        if "refused" in result.found:
            rows.append([*row, result.found["refused"]])
            continue
        record = looks.stored_record(result.found)
        if record.why_no_auc:
            rows.append([*row, f"no area: {record.why_no_auc.partition(':')[0]}"])
            continue
        records[label] = record
        rows.append([*row, *_detected(record)])
    heads = ["", "paper", "crashes of", "held-out crashes of lineages", "the paper's detector: frames"]
    heads += ["episodes, nominal", "episodes, near-misses", "best of ours", "episodes, nominal"]
    heads += ["episodes, near-misses", "random crashes warned of", "false alarms"]
    picture = _beside(page, "roc")
    if records:
        draw_roc(records, PAPER_DETECTOR, picture)
    return "\n\n".join(
        [
            "The paper's detector: Mean-Shift clusters of activations, distance to normal against abnormal ones,"
            " a fifth of the *frames* held out. Frames of one crash, and crashes of one lineage, are near-clones,"
            " so we hold out whole lineages. Areas under the ROC curve; those of episodes are by what was seen"
            " up to five steps before the crash. Crashes of random sampling, which no search has touched, count"
            " as warned of if the alarm came five steps or more before; false alarms are among nominal episodes"
            " that the threshold was not set with.",
            _table(heads, rows) + _left_out(known),
            *([f"![ROC curves of detectors]({picture.name})"] if records else []),
        ]
    )


def _detected(record: MonitorRecord) -> list[str]:
    """What the paper's detector and the chosen one are worth."""
    cells = [f"{record.crashes} of {record.lineages}"]
    paper = [one for one in record.methods if (one.method, one.input) == PAPER_DETECTOR]
    cells += [_area(paper[0].frames.value), *_areas(paper[0], record.lead)] if paper else ["no activations", "", ""]
    ours = record.chosen
    warned, alarms = ours.random.in_time, ours.false_alarms
    cells += [f"{ours.method} on {ours.input}", *_areas(ours, record.lead)]
    return [*cells, f"{warned.count} of {warned.of}", f"{alarms.count} of {alarms.of:,}"]


def _areas(method: MethodRecord, lead: int) -> list[str]:
    at = next((one for one in method.leads if one.lead == lead), None)
    if at is None:
        return ["", ""]
    return [f"{_area(one.value)} ({_area(one.low)} to {_area(one.high)})" for one in (at.nominal, at.near_miss)]


def _area(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def _repair(selection: Selection, _page: Path) -> str:
    """RQ4: the repair of ACAS Xu."""
    paper = (
        f"The paper repairs ACAS Xu alone: {REPAIR.crashes_before} crashes in twelve hours before,"
        f" {REPAIR.crashes_after} after; mean return on 3,000 normal inputs {REPAIR.return_before} before,"
        f" {REPAIR.return_after} after."
    )
    return f"{paper}\n\nNot run."


def _inconsistent(selection: Selection, _page: Path) -> str:
    """The paper's table 1."""
    known = {label: selection.look(label, "inconsistent") for label in selection.labels}
    run = {label: one.found for label, one in known.items() if one is not None}
    heads = ["replaced", "paper, CARLA RL", *(f"`{name}`, {one['episodes']:,}" for name, one in run.items())]
    rows = []
    for place, (share, paper) in enumerate(zip(SHARES, PAPER_CRASH_RATES, strict=True)):
        cells = []
        for one in run.values():
            row = one["shares"][place]
            rate = row["crashes"] / row["episodes"] if row["episodes"] else float("nan")
            cells.append(f"{100 * rate:.1f} ({100 * row['low']:.1f} to {100 * row['high']:.1f})")
        rows.append([f"{share:.0%}", f"{100 * paper:.1f}", *cells])
    return (
        "Normal episodes in which each decision is replaced with some probability, and the percentage of them"
        " that crash, with exact 95 % intervals; the number of episodes stands behind the scenario."
        f"\n\n{_table(heads, rows)}{_left_out(known)}"
    )


def _freshness_cost(selection: Selection, _page: Path) -> str:
    """The paper's table 2."""
    result = selection.look(GENERAL, "freshness-cost")
    if result is None:
        return "Not run."
    costs, found = result.costs, result.found
    heads = ["stored sequences", "paper: distance", "paper: mixtures", "ours: distance"]
    heads += ["ours: mixture, alone", f"in a batch of {found['batch']}", "published density, with learning"]
    rows = []
    for row in FRESHNESS_COSTS:
        mixtures = (costs[name] for name in ("mixture_alone", "mixture_in_batch", "published_score_and_learn"))
        distance = costs["distance"][str(row.corpus)]
        ours = [f"{1000 * seconds:.3g} ms" for seconds in (distance, *mixtures)]
        paper = [f"{row.distance_seconds:.2f} s", f"{row.mixture_seconds:.2f} s"]
        rows.append([f"{row.corpus:,}", *paper, *ours])
    return (
        f"One question whether a sequence of {found['steps']} states of {found['dimensions']} numbers is fresh,"
        f" {found['components']} components; CPU time, the best of some runs.\n\n{_table(heads, rows)}"
    )


def _left_out(known: Mapping[str, Result | None]) -> str:
    missing = [f"`{label}`" for label, one in known.items() if one is None]
    return f"\n\nNot run: {', '.join(missing)}." if missing else ""


def _circumstances(selection: Selection) -> Iterator[str]:
    """How the results came about, one line each."""
    abouts = [one.about for one in selection.everything]
    if not abouts:
        yield "nothing was run"
        return
    yield from (f"command: `{one}`" for one in dict.fromkeys(_portable(one["command"]) for one in abouts))
    yield f"machine: {'; '.join(sorted({one['machine'] for one in abouts}))}; one process, one thread"
    versions = {f"{name} {version}" for one in abouts for name, version in one["versions"].items()}
    yield f"versions: {', '.join(sorted({'Python ' + one['python'] for one in abouts}) + sorted(versions))}"
    dates = sorted(one["date"][:10] for one in abouts)
    yield f"dates: {dates[0]}" + (f" to {dates[-1]}" if dates[-1] != dates[0] else "")
    budgets = dict.fromkeys((one.identity.label, one.identity.budget) for one in selection.everything)
    for label, budget in budgets:
        some = [one for one in selection.everything if (one.identity.label, one.identity.budget) == (label, budget)]
        seconds = sum(one.costs["cpu_seconds"] for one in some)
        resumed = sum(bool(one.costs.get("is_resumed")) for one in some)
        text = f"{label}, {budget}: {len(some)} parts in {seconds:,.0f} s of CPU time"
        yield text + (f", without what {resumed} of them took before they were killed" if resumed else "")


def _portable(command: str) -> str:
    """`command` with folders by their names alone: where they lay says nothing to a reader."""
    words = shlex.split(command)
    return shlex.join(Path(word).name if Path(word).is_absolute() else word for word in words)


def _run_campaigns(selection: Selection) -> list[tuple[str, Mapping[str, Sequence[Result]]]]:
    return [(label, selection.campaigns[label]) for label in selection.labels if label in selection.campaigns]


def _beside(page: Path, name: str) -> Path:
    """Where the picture called `name` lies for a `page`."""
    return page.with_name(f"{page.stem}-{name}.png")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:,.1f}"


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    filled = [[*row, *[""] * (len(heads) - len(row))] for row in rows]
    lines = [heads, ["---"] * len(heads), *filled]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


SECTIONS: tuple[Section, ...] = (
    ("results", "Results: crashes within the budget (RQ1)", _results),
    ("time", "Where the time goes", _time),
    ("curves", "With and without freshness (RQ1, RQ2)", _curves),
    ("coverage", "What was covered (RQ2)", _coverage),
    ("activations", "Activations of crashes (RQ3)", _activations),
    ("detector", "The detector (RQ4)", _detector),
    ("repair", "Repair (RQ4)", _repair),
    ("inconsistent", "Inconsistent decisions (table 1)", _inconsistent),
    ("cost", "Cost of a question for freshness (table 2)", _freshness_cost),
)
