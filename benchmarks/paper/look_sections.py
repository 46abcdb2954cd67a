"""Sections of the page that look closer: coverage, activations, detector, repair, and both small tables."""

from pathlib import Path

from benchmarks.paper import looks
from benchmarks.paper.figures import draw_roc, shrink
from benchmarks.paper.markdown import NOT_RUN, area, beside, bullets, left_out, table
from benchmarks.paper.parts import GENERAL
from benchmarks.paper.published import DETECTOR_AREAS, FRESHNESS_COSTS, REPAIR
from benchmarks.paper.repaired import FUZZED_BY
from benchmarks.paper.scenarios import base_name
from benchmarks.paper.selection import Selection
from policyfuzz.analysis.inconsistent import PAPER_CRASH_RATES, SHARES
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

#: Method and input of the paper's detector.
PAPER_DETECTOR = ("mean-shift", "activations")
#: Classes of episodes that are told apart.
_PAIRS = ((CRASH, NORMAL), (CRASH, NEAR_MISS), (CRASH, MUTATED), (MUTATED, NORMAL))


def coverage_section(selection: Selection, page: Path) -> str:
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
            rows.append([f"`{label}`", NOT_RUN])
            continue
        found = looks.stored_coverage(result.found)
        picture = beside(page, f"coverage-{label}")
        draw_coverage(found, picture)
        shrink(picture)
        pictures.append(f"![What campaigns on {label} covered]({picture.name})")
        for position, one in enumerate(found.all):
            name = f"`{label}`, {found.episodes:,} episodes" if position == 0 else ""
            numbers = [f"{one.behaviours:,}", f"{found.share(one):.0%}", f"{one.cells:,}", f"{one.area:.3g}"]
            rows.append([name, one.name, *numbers])
    return "\n\n".join([*parts, table(heads, rows), *pictures])


def activations_section(selection: Selection, page: Path) -> str:
    """RQ3: the t-SNE picture of activations."""
    parts = [
        "The paper projects hidden activations of crash, normal and randomly mutated sequences with t-SNE,"
        " and sees that crashes lie apart while mutated ones mix with normal ones. Numbers here say how well"
        " the nearest episodes of *other* lineages tell one class from another (area under the ROC curve: 1"
        " is always, 0.5 chance), for activations and, in brackets, for observations. Each episode is the"
        " mean over the last decisions before its crash, or at the same steps."
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
        picture = beside(page, f"activations-{label}")
        draw_activations(found, picture)
        shrink(picture)
        pictures.append(f"![Inside the policy of {label}]({picture.name})")
        lineages = max(one.lineages for one in found.separations if one.positive == CRASH)
        crashes = f"{found.count(CRASH)}, {lineages}"
        cells = [_separated(found, *pair) for pair in _PAIRS]
        rows.append([f"`{label}`", f"`{result.found['campaign']}`", crashes, *cells])
    heads = ["", "campaign", "crashes, their lineages", *(f"{one} / {other}" for one, other in _PAIRS)]
    return "\n\n".join([*parts, table(heads, rows) + left_out(known), *pictures])


def _separated(found: ActivationMap, positive: str, negative: str) -> str:
    """How well two classes are told apart by activations, and in brackets by observations."""
    by_table = {
        one.of: one for one in found.separations if (one.positive, one.negative) == (positive, negative)
    }
    texts = [area(by_table[of].auc) for of in (ACTIVATIONS, OBSERVATIONS) if of in by_table]
    return f"{texts[0]} ({texts[1]})" if len(texts) > 1 else ", ".join(texts)


def detector_section(selection: Selection, page: Path) -> str:
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
    heads = ["", "paper", "crashes of", "held-out crashes, their lineages", "the paper's detector: frames"]
    heads += ["episodes, nominal", "episodes, near-misses", "best of ours", "episodes, nominal"]
    heads += ["episodes, near-misses", "random crashes warned of", "false alarms"]
    picture = beside(page, "roc")
    if records:
        draw_roc(records, PAPER_DETECTOR, picture)
    return "\n\n".join(
        [
            "The paper's detector: Mean-Shift clusters of activations, distance to normal against abnormal"
            " ones, a fifth of the *frames* held out. Frames of one crash, and crashes of one lineage, are"
            " near-clones, so we hold out whole lineages. Areas under the ROC curve; those of episodes are by"
            " what was seen up to five steps before the crash. Crashes of random sampling, which no search"
            " has touched, count as warned of if the alarm came five steps or more before; false alarms are"
            " among nominal episodes that the threshold was not set with.",
            table(heads, rows) + left_out(known),
            *([f"![ROC curves of detectors]({picture.name})"] if records else []),
        ]
    )


def _detected(record: MonitorRecord) -> list[str]:
    """What the paper's detector and the chosen one are worth."""
    cells = [f"{record.crashes}, {record.lineages}"]
    paper = [one for one in record.methods if (one.method, one.input) == PAPER_DETECTOR]
    cells += (
        [area(paper[0].frames.value), *_areas(paper[0], record.lead)] if paper else ["no activations", "", ""]
    )
    ours = record.chosen
    warned, alarms = ours.random.in_time, ours.false_alarms
    cells += [f"{ours.method} on {ours.input}", *_areas(ours, record.lead)]
    return [*cells, f"{warned.count} of {warned.of}", f"{alarms.count} of {alarms.of:,}"]


def _areas(method: MethodRecord, lead: int) -> list[str]:
    at = next((one for one in method.leads if one.lead == lead), None)
    if at is None:
        return ["", ""]
    return [f"{area(one.value)} ({area(one.low)} to {area(one.high)})" for one in (at.nominal, at.near_miss)]


def repair_section(selection: Selection, _page: Path) -> str:
    """RQ4: the repair of ACAS Xu."""
    paper = (
        f"The paper repairs ACAS Xu alone: {REPAIR.crashes_before} crashes in twelve hours before,"
        f" {REPAIR.crashes_after} after; mean return on 3,000 normal inputs {REPAIR.return_before} before,"
        f" {REPAIR.return_after} after."
    )
    parts = [paper]
    for label in selection.labels:
        result = selection.look(label, "repair")
        if result is None:
            continue
        found, episodes = result.found, result.identity.size["episodes"]
        text = f"`{label}`: {found['before']:,} crashes in {episodes:,} episodes of `{FUZZED_BY}` before, "
        if "refused" in found:
            parts.append(f"{text}and nothing was changed: {found['refused']}.")
            continue
        holds = "passes every test" if found["holds"] else "does not pass every test"
        parts += [f"{text}{found['after']:,} after. The new policy {holds}:", bullets(found["tests"])]
    return "\n\n".join(parts if len(parts) > 1 else [paper, "Not run."])


def inconsistent_section(selection: Selection, _page: Path) -> str:
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
        f"\n\n{table(heads, rows)}{left_out(known)}"
    )


def freshness_cost_section(selection: Selection, _page: Path) -> str:
    """The paper's table 2."""
    result = selection.look(GENERAL, "freshness-cost")
    if result is None:
        return "Not run."
    costs, found = result.costs, result.found
    heads = ["stored sequences", "paper: distance", "paper: mixtures", "ours: distance"]
    heads += ["ours: mixture, alone", f"in a batch of {found['batch']}", "published density, with learning"]
    rows = []
    for row in FRESHNESS_COSTS:
        mixtures = (
            costs[name] for name in ("mixture_alone", "mixture_in_batch", "published_score_and_learn")
        )
        distance = costs["distance"][str(row.corpus)]
        ours = [f"{1000 * seconds:.3g} ms" for seconds in (distance, *mixtures)]
        paper = [f"{row.distance_seconds:.2f} s", f"{row.mixture_seconds:.2f} s"]
        rows.append([f"{row.corpus:,}", *paper, *ours])
    return (
        f"One question whether a sequence of {found['steps']} states of {found['dimensions']} numbers is"
        f" fresh, {found['components']} components; CPU time, the best of some runs.\n\n{table(heads, rows)}"
    )
