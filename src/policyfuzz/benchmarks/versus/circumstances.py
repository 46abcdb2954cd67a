"""How results came about: the commands that give them again, machine, versions, seeds."""

from collections.abc import Iterator, Sequence

from policyfuzz.benchmarks.versus.commands import commands
from policyfuzz.benchmarks.versus.contestants import OWN
from policyfuzz.benchmarks.versus.results import Results


def describe(results: Results) -> Iterator[str]:
    """One line for each circumstance, for a reader."""
    abouts = [trial.about for trial in results.trials]
    versions = sorted(
        {f"{name} {version}" for about in abouts for name, version in about["versions"].items()}
    )
    dates = sorted(about["date"][:10] for about in abouts)
    codes = {trial.about["code"] for trial in results.trials if trial.task.contestant in OWN}
    yield from (f"command: `{command}`" for command in commands(results))
    yield f"machine: {'; '.join(sorted({about['machine'] for about in abouts}))}"
    versions = sorted({f"Python {about['python']}" for about in abouts}) + versions
    yield f"versions: {', '.join(versions)}"
    yield f"dates: {dates[0]}" + (f" to {dates[-1]}" if dates[-1] != dates[0] else "")
    yield f"trials: {len(results.trials)}; seeds: {_seeds(results)}"
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
