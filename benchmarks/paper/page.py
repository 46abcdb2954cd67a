"""The page of results: what the paper says, what we found, and where they differ."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.paper import campaign_sections, look_sections
from benchmarks.paper.markdown import NOT_RUN, bullets, table
from benchmarks.paper.parts import GENERAL, code_of
from benchmarks.paper.results import Result
from benchmarks.paper.scenarios import PUBLIC, base_name
from benchmarks.paper.selection import Selection, select
from benchmarks.table import PUBLISHED
from policyfuzz.core.errors import unknown_name
from policyfuzz.core.whole_file import make_folder_of, whole_file

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
    parts += ["## How it was run", bullets(_circumstances(selection))]
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
                f"{selection.episodes(label):,}" if run else NOT_RUN,
                str(max(map(len, run.values()))) if run else "",
            ]
        )
    heads = ["scenario", "the paper's model", "ours", "mutations in 12 hours", "episodes here", "seeds"]
    return "\n\n".join(
        [
            "# The paper's results beside ours",
            "Every table and figure of the paper that PolicyFuzz implements (Pang, Yuan and Wang: MDPFuzz,"
            " ISSTA 2022), run again by `python -m benchmarks paper`, which also writes this page from its"
            " result files ([benchmarks.md](benchmarks.md#python--m-benchmarks-paper)). Where the paper's"
            " method is meant, it is run as the authors' code has it: `mdpfuzz-published` with freshness and"
            " `reward-published` without. `mdpfuzz` (the pseudocode with sound numbers), the default strategy"
            " of PolicyFuzz and plain random sampling stand beside them"
            " ([strategies.md](strategies.md#the-published-method-pseudocode-and-code)).",
            table(heads, rows),
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
    if old := sum(one.identity.code != code_of(one.identity.part) for one in selection.everything):
        yield f"{old} of {len(abouts)} parts were run with another state of the code than the present one"
    budgets = dict.fromkeys((one.identity.label, one.identity.budget) for one in selection.everything)
    for label, budget in budgets:
        some = [
            one
            for one in selection.everything
            if (one.identity.label, one.identity.budget) == (label, budget)
        ]
        seconds = sum(one.costs["cpu_seconds"] for one in some)
        resumed = sum(bool(one.costs.get("is_resumed")) for one in some)
        name = "cost of freshness" if label == GENERAL else f"{label}, {budget}"
        text = f"{name}: {len(some)} {'part' if len(some) == 1 else 'parts'} in {seconds:,.0f} s of CPU time"
        yield text + (f", without what {resumed} of them took before they were killed" if resumed else "")


def _portable(command: str) -> str:
    """`command` with folders by their names alone: where they lay says nothing to a reader."""
    words = shlex.split(command)
    return shlex.join(Path(word).name if Path(word).is_absolute() else word for word in words)


SECTIONS: tuple[Section, ...] = (
    ("results", "Results: crashes within the budget (RQ1)", campaign_sections.results_section),
    ("time", "Where the time goes", campaign_sections.time_section),
    ("curves", "With and without freshness (RQ1, RQ2)", campaign_sections.curves_section),
    ("coverage", "What was covered (RQ2)", look_sections.coverage_section),
    ("activations", "Activations of crashes (RQ3)", look_sections.activations_section),
    ("detector", "The detector (RQ4)", look_sections.detector_section),
    ("repair", "Repair (RQ4)", look_sections.repair_section),
    ("inconsistent", "Inconsistent decisions (table 1)", look_sections.inconsistent_section),
    ("cost", "Cost of a question for freshness (table 2)", look_sections.freshness_cost_section),
)
