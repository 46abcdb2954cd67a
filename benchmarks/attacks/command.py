"""Attacks campaigns in bulk and compares each with one that was left alone: python -m benchmarks attacks."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click
import numpy as np
from rich.table import Table

from benchmarks.attacks import files, memory, models, processes
from benchmarks.attacks.victim import AttackFailed, Outcome, Victim, reaches
from benchmarks.measurement import Track, progress
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import unknown_name

Attack = Callable[[Path, int, np.random.Generator], Outcome]


def long_campaign(work: Path, episodes: int, rng: np.random.Generator) -> Outcome:
    """One campaign of so many episodes, killed three times, with workers; the other is in one process."""
    work.mkdir()
    victim, folder = Victim(work, seed=0, executions=episodes), work / "long"
    for moment in victim.moments(3, rng):
        process = victim.start(folder, "-j", "2")
        if reaches(process, folder, moment):
            process.kill()
        process.communicate()
    differences = victim.finish(folder, "-j", "2")
    return Outcome("episodes of one long campaign", episodes, tuple(differences), "killed three times")


#: Names on the command line, how often each is done by default, and the attack.
ATTACKS: dict[str, tuple[int, Attack]] = {
    "kills": (55, processes.kill_coordinators),
    "worker-kills": (16, processes.kill_workers),
    "stops": (10, processes.stop_processes),
    "second-writers": (10, processes.second_writers),
    "copies": (20, files.hot_copies),
    "cuts": (40, files.cut_logs),
    "full-disks": (10, files.full_disks),
    "limited-files": (10, files.limited_files),
    "out-of-memory": (3, memory.out_of_memory),
    "untrusted-models": (16, models.untrusted_models),
    "episodes": (3_000_000, long_campaign),
}


def run(times: dict[str, int], seed: int, track: Track) -> list[Outcome]:
    """Do each attack so many times."""
    with tempfile.TemporaryDirectory(prefix="attacks-") as work:
        outcomes = []
        for name in track(times, "attacks"):
            outcomes.append(attack(name, times[name], seed, Path(work) / name))
            done = outcomes[-1]
            click.echo(f"{done.attack}: {done.times:,} times, {len(done.differences)} differences", err=True)
        return outcomes


def attack(name: str, times: int, seed: int, work: Path) -> Outcome:
    """Do one attack in the new folder `work`; fewer times than asked for is a difference too."""
    rng = np.random.default_rng([seed, list(ATTACKS).index(name)])
    try:
        outcome = ATTACKS[name][1](work, times, rng)
    except AttackFailed as failure:
        return Outcome(name, 0, (str(failure),), "not finished")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if outcome.is_possible and outcome.times < times:
        return replace(outcome, differences=(*outcome.differences, f"done {outcome.times} times of {times}"))
    return outcome


@click.command("attacks")
@click.option("--only", multiple=True, help="Name of an attack; may be repeated.  [default: all]")
@click.option("--seed", default=0, show_default=True, help="Decides when and where each attack hits.")
@as_json
def command(only: tuple[str, ...], seed: int, is_json: bool, **times: int) -> int:
    """Attack running campaigns, and compare each with one that was left alone.

    Each attacked campaign is resumed to its end. All its tables must be equal to those of the other, apart
    from columns of time and workers. Exit code 1 if anything differs, or an attack could not be finished.
    """
    counts = {name: times[name.replace("-", "_")] for name in ATTACKS}
    for name in only:
        if name not in counts:
            raise unknown_name("attack", name, counts)
    chosen = {name: count for name, count in counts.items() if count and (not only or name in only)}
    with progress() as track:
        outcomes = run(chosen, seed, track)
    if is_json:
        print_json([asdict(outcome) for outcome in outcomes])
    else:
        results().print(_table(outcomes))
        for outcome in outcomes:
            for difference in outcome.differences:
                click.echo(f"{outcome.attack}: {difference}")
    return int(any(outcome.differences for outcome in outcomes))


for _name, (_count, _attack) in ATTACKS.items():
    _help = f"Times: {(_attack.__doc__ or '').splitlines()[0]}"
    command = click.option(
        f"--{_name}", type=click.IntRange(0), default=_count, show_default=True, help=_help
    )(command)


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("attack")
    table.add_column("times", justify="right")
    table.add_column("differences", justify="right")
    table.add_column("")
    for outcome in outcomes:
        count = str(len(outcome.differences))
        table.add_row(outcome.attack, f"{outcome.times:,}", count, outcome.remark)
    return table
