"""python -m benchmarks paper: runs what is missing, and writes the page of the paper's results and ours."""

import multiprocessing
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import click
from threadpoolctl import threadpool_limits

from benchmarks.paper import results
from benchmarks.paper.page import write_page
from benchmarks.paper.parts import KINDS, Part, general_part, parts_of
from benchmarks.paper.results import Result
from benchmarks.paper.scenarios import BUDGETS, Scenario, choose
from benchmarks.versus.raw import surroundings
from policyfuzz.cli.options import FOLDER
from policyfuzz.core.errors import MissingExtra, UsageError
from policyfuzz.core.target import Target

EPILOG = """\
\b
Targets: acasxu, coopnavi, bipedal, driving-rl, driving-il. With --public-networks, acasxu is run with the
networks that the paper tests, and its results stand beside those of our own.
\b
Examples:
  python -m benchmarks paper --target acasxu -o paper
  python -m benchmarks paper --budget full --target acasxu --public-networks DIR -o paper
  python -m benchmarks paper -o paper --report-only --page docs/paper.md --notes benchmarks/paper-notes.md"""


@click.command("paper", epilog=EPILOG)
@click.option(
    "--budget",
    type=click.Choice(list(BUDGETS)),
    default="small",
    show_default=True,
    help="How much of each scenario is run.",
)
@click.option("--target", "names", multiple=True, help="To run; may be repeated.  [default: all]")
@click.option(
    "--part",
    "kinds",
    type=click.Choice(KINDS),
    multiple=True,
    help="To run; may be repeated. Others look at campaigns.  [default: all]",
)
@click.option("--episodes", type=int, help="Of each campaign, instead of a budget.")
@click.option("--seeds", default=1, show_default=True, help="Campaigns of each strategy.")
@click.option("-j", "--jobs", default=1, show_default=True, help="Parts at a time, a process each.")
@click.option("--public-networks", type=FOLDER, help="Folder with the public networks, for acasxu.")
@click.option(
    "-o", "--out", type=FOLDER, default=Path("paper"), show_default=True, help="For results and campaigns."
)
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), help="Write a page of results here.")
@click.option(
    "--notes",
    type=click.Path(path_type=Path),
    help="Markdown file with reasons, for the sections of the page.",
)
@click.option("--keep-outdated", is_flag=True, help="Do not run parts again only because our code changed.")
@click.option("--report-only", is_flag=True, help="Run nothing; write the page from what lies in the folder.")
def command(
    budget: str,
    names: tuple[str, ...],
    kinds: tuple[str, ...],
    episodes: int | None,
    seeds: int,
    jobs: int,
    public_networks: Path | None,
    out: Path,
    page: Path | None,
    notes: Path | None,
    keep_outdated: bool,
    report_only: bool,
) -> None:
    """Run every experiment of the MDPFuzz paper (ISSTA 2022) with our models, and put both side by side.

    Each part writes its own file in OUT as soon as it is done. So the bench can be killed at any time, and
    continues when it is started again, in the middle of a campaign too. A part is run again if its target,
    model, rules, size, seed or code is another one than that of its file. With the same code it finds the
    same; only what it cost differs. `small` takes minutes for each target, `full` as many episodes as the
    paper's twelve hours had mutations.
    """
    for what, count in (("seeds", seeds), ("jobs", jobs)):
        if count < 1:
            raise UsageError(f"{what} is {count}, expected 1 or more")
    scenarios = choose(names, budget, episodes, public_networks)
    if not report_only:
        with threadpool_limits(1):  # one core for each process
            if not kinds:
                run_part(general_part(out), keep_outdated)
            for scenario in scenarios:
                _run_scenario(_Work(scenario, out, seeds, kinds or KINDS, keep_outdated), jobs)
    if page is not None:
        write_page(results.load_all(out), page, "" if notes is None else notes.read_text(encoding="utf-8"))
        _say(f"the page is {page}")


@dataclass(frozen=True, slots=True)
class _Work:
    """One scenario, as another process can be given it."""

    scenario: Scenario
    out: Path
    seeds: int
    kinds: tuple[str, ...]
    keep_outdated: bool

    def parts(self) -> list[Part]:
        parts = parts_of(self.scenario, _loaded(self.scenario), self.out, self.seeds)
        return [part for part in parts if part.kind in self.kinds]


def _run_scenario(work: _Work, jobs: int) -> None:
    try:
        parts = work.parts()
    except MissingExtra as error:
        _say(f"{work.scenario.label} is left out: {error}")
        return
    if jobs == 1:
        for part in parts:
            run_part(part, work.keep_outdated)
    elif parts:
        _run_side_by_side(work, parts, jobs)


def _run_side_by_side(work: _Work, parts: list[Part], jobs: int) -> None:
    """Run `parts` in so many processes, each part once those are done that it needs."""
    waiting = dict(enumerate(parts))
    running: dict[Future[None], Part] = {}
    # a fresh interpreter for each: threads of packages do not survive a fork
    pool = ProcessPoolExecutor(min(jobs, len(parts)), multiprocessing.get_context("spawn"))
    try:
        while waiting or running:
            unfinished = {one.file for one in (*waiting.values(), *running.values())}
            ready = [number for number, part in waiting.items() if not part.needs & unfinished]
            for number in ready[: jobs - len(running)]:
                running[pool.submit(_run_number, work, number)] = waiting.pop(number)
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                running.pop(done)
                done.result()
    finally:  # after Ctrl-C, or an error, nothing more is begun
        pool.shutdown(cancel_futures=True)


def _run_number(work: _Work, number: int) -> None:
    with threadpool_limits(1):
        run_part(work.parts()[number], work.keep_outdated)


@lru_cache(maxsize=1)
def _loaded(scenario: Scenario) -> Target:
    """The target of `scenario`; its parts come one after another."""
    return scenario.load()


def run_part(part: Part, keep_outdated: bool) -> None:
    """Run `part` unless its result is there, and write that as soon as it is."""
    name = f"{part.identity.label} {part.identity.part} seed {part.identity.seed}"
    if part.file.exists():
        stored = results.load(part.file).identity
        if stored == part.identity:
            return
        if keep_outdated and part.identity.is_outdated(stored):
            _say(f"{name}: kept, though made with another state of our code")
            return
        _say(f"{name}: runs again, {part.identity.differences(stored)}")
    about = surroundings()  # before the part: files may be edited while it runs
    cpu_started = time.process_time()
    try:
        found, costs = part.run()
    except MissingExtra as error:
        _say(f"{name} is left out: {error}")
        return
    cpu_seconds = time.process_time() - cpu_started
    Result(part.identity, found, {"cpu_seconds": round(cpu_seconds, 2)} | costs, about).save(part.file)
    _say(f"{name}: done in {cpu_seconds:.1f} s of CPU time")


def _say(line: str) -> None:
    click.echo(line, err=True)
