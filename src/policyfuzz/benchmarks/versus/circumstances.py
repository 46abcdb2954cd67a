"""How results came about: the command that gives them again, machine, versions, seeds."""

from collections.abc import Iterator, Sequence

from policyfuzz.benchmarks.versus.contestants import OWN, SLOW_PEERS, contestant_names
from policyfuzz.benchmarks.versus.results import Results
from policyfuzz.benchmarks.versus.targets import ENTRIES


def describe(results: Results) -> Iterator[str]:
    """One line for each circumstance, for a reader."""
    abouts = [trial.about for trial in results.trials]
    versions = sorted(
        {f"{name} {version}" for about in abouts for name, version in about["versions"].items()}
    )
    dates = sorted(about["date"][:10] for about in abouts)
    codes = {trial.about["code"] for trial in results.trials if trial.task.contestant in OWN}
    yield f"command: `{command(results)}`"
    yield f"machine: {'; '.join(sorted({about['machine'] for about in abouts}))}"
    versions = sorted({f"Python {about['python']}" for about in abouts}) + versions
    yield f"versions: {', '.join(versions)}"
    yield f"dates: {dates[0]}" + (f" to {dates[-1]}" if dates[-1] != dates[0] else "")
    yield f"trials: {len(results.trials)}; seeds: {_seeds(results)}"
    if len(codes) > 1:
        yield f"not of one piece: trials of our strategies were run with {len(codes)} states of their code"


def command(results: Results) -> str:
    """The command that gives these results again."""
    tasks = [trial.task for trial in results.trials]
    parts = ["policyfuzz bench versus"]
    if set(results.labels) != set(ENTRIES):
        names = {task.label: task.label if task.label in ENTRIES else task.target for task in tasks}
        parts += [f"--target {name}" for name in names.values()]
    if set(results.contestants) != set(contestant_names()):
        parts += [f"--contestant {name}" for name in results.contestants]
    for option, slow in (("--seeds", False), ("--peer-seeds", True)):
        seeds = [task.seed for task in tasks if (task.contestant in SLOW_PEERS) == slow]
        parts += [f"{option} {max(seeds) + 1}"] if seeds else []
    lengths = {task.episodes for task in tasks}
    usual = {ENTRIES[label].episodes for label in results.labels if label in ENTRIES}
    if len(lengths) == 1 and not lengths & usual:
        parts.append(f"--episodes {lengths.pop()}")
    if "acasxu-public" in results.labels:
        parts.append("--public-networks DIR")
    return " ".join(parts)


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
