"""Runs trials: each contestant, on each target, with each seed; what has been run is not run again."""

import math
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.versus import raw, reference, targets
from benchmarks.versus.contestants import (
    SLOW_PEERS,
    CampaignTrial,
    episodes_of,
    find_contestant,
    is_own,
)
from benchmarks.versus.courses import has_courses
from benchmarks.versus.diversity import RADII, novelty
from benchmarks.versus.judge import Judge, Judged
from benchmarks.versus.kept import KeptTrial, is_outdated
from benchmarks.versus.raw import RawTrial, Task, code_digest, surroundings
from benchmarks.versus.rules import Rules
from benchmarks.versus.trial import Trial
from policyfuzz.core.errors import MissingExtra, PolicyFuzzError, UsageError, blamed_on
from policyfuzz.core.target import Target


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run."""

    tasks: tuple[Task, ...]
    left_out: tuple[str, ...]  #: what cannot run here and why, for a reader

    @staticmethod
    def make(
        entries: Sequence[targets.Entry], contestants: Sequence[str], seeds: int, slow_peer_seeds: int
    ) -> "Plan":
        """Trials of all that can run here, one target after another, one seed after another."""
        for name, count in (("seeds", seeds), ("peer-seeds", slow_peer_seeds)):
            if count < 1:
                raise UsageError(f"{name} is {count}, expected 1 or more")
        here, left_out = _ready_contestants(contestants)
        tasks: list[Task] = []
        for entry in entries:
            try:
                target = targets.load(entry)
            except (MissingExtra, targets.NotHere) as error:
                left_out.append(f"{entry.label} is left out: {error}")
                continue
            new = _tasks(entry, target, here, seeds, slow_peer_seeds)
            if (known := reference.find(entry.label)) is not None and new:
                known.check(new[0])  # now, and not after hours of trials
            tasks += new
        return Plan(tuple(tasks), tuple(left_out))


@dataclass(frozen=True, slots=True)
class Done:
    """A task that has been run, or could not be."""

    task: Task
    result: RawTrial | None
    problem: str = ""


def run_all(
    tasks: Sequence[Task],
    folder: Path,
    jobs: int,
    say: Callable[[str], None],
    earlier: Sequence[KeptTrial] = (),
) -> Iterator[Done]:
    """Run all `tasks` that have no raw file in `folder`, some `jobs` at a time, and write their files.

    Those among the trials of `earlier` runs are not run again either, unless our code has changed since.
    """
    if jobs < 1:
        raise UsageError(f"jobs is {jobs}, expected 1 or more")
    found = {task: raw.find(task, folder) for task in tasks}
    kept = {one.task for one in earlier if not is_outdated(one)}
    left = [task for task, result in found.items() if result is None and task not in kept]
    _say_what_is_there(list(found.values()), say)
    if jobs == 1:
        yield from (run_one(task, folder) for task in left)
        return
    # a fresh interpreter for each: threads of packages do not survive a fork
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))
    try:
        waiting = [pool.submit(run_one, task, folder) for task in left]
        yield from (future.result() for future in as_completed(waiting))
    finally:  # after Ctrl-C, or an error, nothing more is begun
        pool.shutdown(cancel_futures=True)


def run_one(task: Task, folder: Path) -> Done:
    """Run `task`, judge what it claims and write the file; a peer may fail, and then that is written."""
    about = surroundings()  # before the trial: files may be edited while it runs
    target, judge = _judged_target(task.label, task.target, task.policy)
    # one core per process, for everybody
    with threadpool_limits(1):
        try:
            with blamed_on(f"contestant {task.contestant}"):
                trial = find_contestant(task.contestant)(target, task.episodes, task.seed)
        except PolicyFuzzError as error:
            if is_own(task.contestant):
                raise
            if not isinstance(error, MissingExtra):  # which says nothing about the contestant
                raw.note_failure(task, folder, str(error))
            return Done(task, None, str(error))
        result = _result(task, target, trial, judge, about)
    result.save(folder)
    return Done(task, result)


def _result(task: Task, target: Target, trial: Trial, judge: Judge, about: dict[str, Any]) -> RawTrial:
    judged = judge(trial, task.episodes)
    unit = _unit(target, trial, judged)
    new = novelty(unit, target.inputs.periods, judged.behaviours, judged.descriptors, judged.found)
    known, regions = targets.regions_of(task.target, trial.inputs)
    return RawTrial(
        task=task,
        episodes=trial.episodes,
        seconds=trial.seconds,
        cpu_seconds=trial.cpu_seconds,
        simulated_seconds=trial.simulated_seconds if isinstance(trial, CampaignTrial) else math.nan,
        times=trial.times if isinstance(trial, CampaignTrial) else np.full(len(trial.numbers), math.nan),
        numbers=trial.numbers,
        inputs=trial.inputs,
        unit=unit,
        seeds=trial.seeds,
        verdicts=judged.verdicts,
        behaviours=judged.behaviours.astype(np.float32),
        regions=np.where(judged.found, regions, -1),
        outcomes=judged.outcomes,
        courses=judged.courses,
        roots=np.full(len(trial.numbers), -1, np.int64) if trial.roots is None else trial.roots,
        distinct=new.distinct,
        close=new.close,
        near=new.near,
        far=new.far,
        behaviour=new.behaviour,
        known_regions=known,
        has_courses=has_courses(target),
        has_roots=trial.roots is not None,
        about=about | {"radii": RADII.describe(), "dimensions": len(target.inputs.dimensions)},
    )


def _unit(target: Target, trial: Trial, judged: Judged) -> NDArray[np.float64]:
    """(f, d) claims in the unit cube; NaN for what is no finding, and may lie anywhere."""
    unit = np.full(trial.inputs.shape, np.nan)
    if judged.found.any():
        unit[judged.found] = target.inputs.to_unit(trial.inputs[judged.found])
    return unit


def _say_what_is_there(found: Sequence[RawTrial | None], say: Callable[[str], None]) -> None:
    there = [result for result in found if result is not None]
    if not there:
        return
    say(f"{len(there)} of {len(found)} trials are there already, and are not run again")
    old = [one for one in there if is_own(one.task.contestant) and one.about["code"] != code_digest()]
    if old:
        names = ", ".join(sorted({one.task.contestant for one in old}))
        say(f"{len(old)} of them ({names}) are of another state of our code; delete them to run them anew")


@lru_cache(maxsize=1)
def _judged_target(label: str, name: str, policy: str | None) -> tuple[Target, Judge]:
    """A target and its judge; the tasks of a target come one after another."""
    target = targets.load(targets.Entry(label, name, 0, policy))
    return target, Judge(target)


def _ready_contestants(names: Sequence[str]) -> tuple[list[str], list[str]]:
    ready, left_out = [], []
    for name in names:
        try:
            find_contestant(name)
            ready.append(name)
        except MissingExtra as error:
            left_out.append(f"{name} is left out: {error}")
    return ready, left_out


def _tasks(
    entry: targets.Entry, target: Target, contestants: Sequence[str], seeds: int, slow_peer_seeds: int
) -> list[Task]:
    rules = Rules.of(target).sha256
    return [
        Task(
            entry.label,
            entry.target,
            entry.policy,
            name,
            seed,
            episodes_of(name, entry),
            target.policy_sha256,
            rules,
        )
        for seed in range(max(seeds, slow_peer_seeds))
        for name in contestants
        if seed < (slow_peer_seeds if name in SLOW_PEERS else seeds)
    ]
