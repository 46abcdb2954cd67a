"""The page of results, written from raw files alone."""

from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path

from benchmarks.versus import columns, tables
from benchmarks.versus.contestants import contestant_names, is_own
from benchmarks.versus.diversity import RADII
from benchmarks.versus.goals import BELOW_NOBODY, Goal, shortfalls
from benchmarks.versus.kept import is_outdated
from benchmarks.versus.results import Contest, Group, Results
from benchmarks.versus.targets import ENTRIES
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.settings import DISTINCT_RADIUS
from policyfuzz.search.distinct import ALIKE_BEHAVIOUR

#: Files that a page links to.
BESIDE = ("episodes.png", "time.png", "trials.csv")


def beside(page: Path, name: str) -> Path:
    """Where the file `name` of BESIDE lies for a `page`."""
    return page.with_name(f"{page.stem}-{name}")


def write_page(results: Results, goals: Sequence[Goal], page: Path, notes: str = "") -> None:
    """Write the page; `report` puts the files that it links to beside it."""
    over_episodes, over_time, numbers = (beside(page, name).name for name in BESIDE)
    sections = [
        _text("page_introduction.md"),
        "## Where `default` falls short\n\n" + _falls_short(results, goals),
        "## Failure mass\n\n" + _failure_mass(results),
        "## How the lead depends on what is counted\n\n" + _lead(results),
        "## What must hold\n\n" + _goals(goals),
        "## Missing rows\n\n" + _missing(results),
        "## How it is measured\n\n" + _text("page_method.md"),
        _bullets(_circumstances(results)),
        f"All numbers of every trial: [{numbers}]({numbers}).",
        "## Curves\n\nMeans over trials with 95 % bootstrap bands.",
        f"![What was found over episodes]({over_episodes})",
        *(_target(results, label) for label in results.labels),
        _freshness(results, over_time),
        *([f"## Notes\n\n{notes.strip()}"] if notes.strip() else []),
    ]
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    except OSError as error:
        raise CampaignError(f"cannot write {page}: {error.strerror or error}") from error


def _text(name: str) -> str:
    """A part of the page that is written by hand, with the radii filled in."""
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()
    return text.format(**RADII.describe(), distinct=DISTINCT_RADIUS, alike=ALIKE_BEHAVIOUR)


def _falls_short(results: Results, goals: Sequence[Goal]) -> str:
    """Columns in which somebody is better, and goals that are missed: what a reader must see first."""
    rows = [
        [
            one.label,
            f"{one.episodes:,}",
            columns.COLUMNS[one.metric].name,
            f"`{one.contestant}`",
            one.numbers,
        ]
        for label in results.labels
        for one in shortfalls(results, label)
    ]
    missed = [goal for goal in goals if goal.is_met is False]
    unmeasured = sum(goal.is_met is None for goal in goals)
    told = [goal for goal in goals if goal.what == BELOW_NOBODY]
    parts = [
        "In no column that was measured is `default` below a contestant beyond chance (p < 0.05). All"
        f" contestants, with enough trials to tell, were there on {sum(goal.is_met is True for goal in told)}"
        f" of {len(ENTRIES)} targets."
    ]
    if rows:
        parts = [
            f"In {len(rows)} columns `default` is below a contestant beyond chance (p < 0.05):",
            _table(["target", "episodes", "column", "below", "numbers"], rows),
        ]
    parts.append(
        f"Of {len(goals)} goals {len(missed)} are missed and {unmeasured} are not measured,"
        " see [what must hold](#what-must-hold)."
    )
    return "\n\n".join(parts)


def _failure_mass(results: Results) -> str:
    """The headline: who covers how much of what random testing would ever find."""
    if not results.references:
        return "Not measured: no target of this run has a reference set."
    heads, rows = tables.masses(results)
    sets = "; ".join(
        f"{label}: {len(one):,} random crashes, {1000 * len(one) / one.episodes:.3g} of 1,000 valid draws"
        for label, one in sorted(results.references.items())
    )
    parts = [
        "Share of independent random crashes, drawn with seeds that no contestant uses, that lie within"
        f" {RADII.near} and {RADII.far} of a finding in the unit cube of inputs.",
        _table(heads, rows),
        f"Reference sets: {sets}. Other targets have none: their random inputs crash too rarely or too"
        " slowly, or have so many dimensions that no two random crashes are that near to each other.",
    ]
    return "\n\n".join(parts)


def _lead(results: Results) -> str:
    """The same lead by every count: it falls as copies of known crashes count for less."""
    heads, rows = tables.lead(results)
    if not rows:
        return "Not measured."
    text = "Means of `default` over those of `random`, and of a naive baseline that varies known crashes:"
    return f"{text}\n\n{_table(heads, rows)}"


def _missing(results: Results) -> str:
    """All rows that a whole bench would have and this one does not."""
    lines = [f"{label}: all" for label in ENTRIES if label not in results.labels]
    for label in results.labels:
        missing = [name for name in contestant_names() if not results.of(label, name)]
        if missing:
            lines.append(f"{label}: {', '.join(f'`{name}`' for name in missing)}")
    return _bullets(lines) if lines else "None."


def _circumstances(results: Results) -> Iterator[str]:
    """How the results came about, one line each: commands, machine, versions, seeds."""
    abouts = [trial.about for trial in results.trials]
    versions = sorted(
        {f"{name} {version}" for about in abouts for name, version in about["versions"].items()}
    )
    dates = sorted(about["date"][:10] for about in abouts)
    codes = {trial.about["code"] for trial in results.trials if is_own(trial.task.contestant)}
    commands = dict.fromkeys(about["command"] for about in abouts if "command" in about)
    yield from (f"command: `{command}`" for command in commands)
    yield f"machine: {'; '.join(sorted({about['machine'] for about in abouts}))}"
    versions = sorted({f"Python {about['python']}" for about in abouts}) + versions
    yield f"versions: {', '.join(versions)}"
    yield f"dates: {dates[0]}" + (f" to {dates[-1]}" if dates[-1] != dates[0] else "")
    yield f"trials: {len(results.trials)}; seeds: {_seeds(results)}"
    if earlier := len(results.trials) - len(results.measured):
        yield f"{earlier} of these trials are of earlier runs, of which the numbers were kept and no curves"
    if outdated := dict.fromkeys(trial.task.label for trial in results.trials if is_outdated(trial)):
        names = ", ".join(outdated)
        yield f"`default` was run with another state of its code than the present one on {names}"
    if len(codes) > 1:
        yield f"not of one piece: trials of our strategies were run with {len(codes)} states of their code"


def _seeds(results: Results) -> str:
    """Which contestants had which seeds, those with the same ones together."""
    by_seeds: dict[tuple[int, ...], list[str]] = {}
    for name in results.contestants:
        seeds = tuple(sorted({one.task.seed for one in results.trials if one.task.contestant == name}))
        by_seeds.setdefault(seeds, []).append(name)
    return "; ".join(f"{_span(seeds)} for {', '.join(names)}" for seeds, names in by_seeds.items())


def _span(seeds: Sequence[int]) -> str:
    is_run = list(seeds) == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 2
    return f"{seeds[0]} to {seeds[-1]}" if is_run else ", ".join(map(str, seeds))


def _goals(goals: Sequence[Goal]) -> str:
    words = {True: "met", False: "**missed**", None: "not measured"}
    rows = ([goal.target, goal.what, goal.numbers, words[goal.is_met]] for goal in goals)
    return _table(["target", "goal", "numbers", ""], rows)


def _target(results: Results, label: str) -> str:
    contests = results.contests(label)
    first = results.of(label, contests[0].groups[0].contestant)[0]
    lines = [f"## {label}", f"`{first.task.target}`, {first.about['dimensions']} dimensions."]
    for contest in contests:
        lines.append(f"{contest.episodes:,} episodes:")
        if contest is not contests[0]:
            lines[-1] = (
                f"Within the {contest.episodes:,} episodes that {_shorter(results, contest)} had; of longer"
                " trials of our strategies the first ones count, since none depends on how many are to come"
                " (`mdpfuzz` and `reward` begin with up to 1,000 random ones). Longer trials of"
                " peers do depend on it, and are left out:"
            )
        lines += [_contest(contest), *_refusals(contest)]
    lines += [
        f"`{name}` could not run: {' '.join(message.split())}"
        for (where, name), message in results.failures.items()
        if where == label
    ]
    return "\n\n".join(lines)


def _shorter(results: Results, contest: Contest) -> str:
    """Those whose trials are no longer than `contest`."""
    names = [group.contestant for group in contest.groups]
    shorter = [name for name in names if results.length(contest.label, name) == contest.episodes]
    return " and ".join(f"`{name}`" for name in shorter)


def _contest(contest: Contest) -> str:
    costs = {head: metric for metric, head in columns.COSTS.items()}
    parts = (
        tables.table(contest, columns.heads(columns.LEADING), is_compared=True),
        tables.table(contest, columns.heads(columns.FURTHER) | costs, is_compared=False),
    )
    return "\n\n".join(
        _table(heads, ([tables.shown(cell) for cell in row] for row in rows)) for heads, rows in parts
    )


def _refusals(contest: Contest) -> Iterator[str]:
    """Who had claims refused, and why."""
    refused = [group for group in contest.groups if group.total("refused")]
    if refused:
        yield "Refused, of all trials together: " + "; ".join(_refusal(group) for group in refused) + "."


def _refusal(group: Group) -> str:
    kinds = ("invalid", "unsolvable", "not_reproduced", "repeated", "late")
    counts = [f"{group.total(kind):,} {kind.replace('_', ' ')}" for kind in kinds if group.total(kind)]
    claims = group.total("refused") + group.total("findings")
    return f"`{group.contestant}` {', '.join(counts)} of {claims:,} claims"


def _freshness(results: Results, picture: str) -> str:
    """The paper's own comparison."""
    parts = [
        "## Does freshness help?",
        "The comparison of the paper (RQ2): `mdpfuzz`, which also keeps inputs whose state sequence is fresh,"
        " against `reward`, the same without that. An A12 above 0.5 speaks for freshness.",
    ]
    rows = [one.row for one in tables.Freshness.of(results)]
    if rows:
        heads = ["target", "mean of", "`mdpfuzz`", "`reward`", "A12", "p", "with freshness"]
        parts += [_table(heads, rows), "Over processor time, of which freshness takes its share:"]
        parts.append(f"![What was found over time]({picture})")
    else:
        parts.append("Not measured.")
    return "\n\n".join(parts)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
