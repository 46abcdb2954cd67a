"""Estimates from Python how likely a failure is."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from policyfuzz.api.subjects import Input, as_target
from policyfuzz.campaign.health import check_target, is_unhealthy
from policyfuzz.core.errors import UnhealthyTarget, UsageError
from policyfuzz.core.oracle import Oracle
from policyfuzz.core.settings import Duration, seconds_of
from policyfuzz.core.target import Level, MakeRunner, Run, Target
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.execution.executor import choose_executor
from policyfuzz.triage.estimate import REPLICATES, Estimate, EstimateSettings
from policyfuzz.triage.estimate_file import estimation_bytes, read_estimation
from policyfuzz.triage.estimation import Estimation

#: Random episodes of the health check.
_CHECKED_EPISODES = 50
#: Seconds between two versions of the file.
_SAVE_SECONDS = 1.0


def estimate(
    target: Any,
    policy: Any = None,
    *,
    oracle: str | Oracle | None = None,
    input: Input | None = None,  # noqa: A002 - as --input on the command line
    bounds: str | float | None = None,
    horizon: int | None = None,
    options: Mapping[str, str] | None = None,
    trust: bool = False,
    max_execs: int | None = None,
    max_time: Duration | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
    workers: int | None = None,
    executor: str | None = None,
    timeout: Duration | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Estimate:
    """Estimate how likely a random valid input, solvable where that is tested, makes the `policy` fail.

    See `as_target` for what the arguments up to `trust` may be, and `fuzz` for those that choose workers.
    Where failures are common, random draws are counted. Rare ones, down to 1e-8, need an oracle with margins.
    `max_execs` limits the episodes and decides how precise it gets. The file `out` keeps what was done, and
    the same call goes on from there. A target that fails its health check raises `UnhealthyTarget`; `force`
    continues anyway.
    """
    settings = EstimateSettings(seed, replicates, max_execs)
    choice = choose_executor(executor, workers, seconds_of(timeout))
    subject = as_target(
        target,
        policy,
        oracle=oracle,
        input=input,
        bounds=bounds,
        horizon=horizon,
        options=options,
        trust=trust,
        make_runner=choice.make_runner,
        executor=choice,
    )
    path = None if out is None else Path(out)
    return run_estimate(subject, settings, choice.make_runner, seconds_of(max_time), path, force)


def run_estimate(
    target: Target,
    settings: EstimateSettings,
    make_runner: MakeRunner,
    max_seconds: float | None = None,
    path: Path | None = None,
    force: bool = False,
    told: Callable[[Estimation], None] = lambda _: None,
) -> Estimate:
    """Estimate how likely a failure of `target` is; `told` hears how far it is."""
    if max_seconds is not None and not max_seconds > 0:
        raise UsageError(f"max-time is {max_seconds:g}, expected more than 0")
    started = saved_at = time.monotonic()
    if path is not None:
        target.check_identified()
    run = make_runner(target)
    if path is not None and path.exists():
        estimation = read_estimation(path, target, run, settings)
    else:
        if not force:
            _check_health(target, settings.seed, run, make_runner)
        estimation = Estimation.begin(target, run, settings)
        if path is not None:
            make_folder_of(path)
            _save(estimation, path)
    while not estimation.is_done and not (max_seconds and time.monotonic() - started > max_seconds):
        estimation.advance()
        told(estimation)
        if path is not None and time.monotonic() - saved_at > _SAVE_SECONDS:
            _save(estimation, path)
            saved_at = time.monotonic()
    if path is not None:
        _save(estimation, path)
    return estimation.estimate


def _save(estimation: Estimation, path: Path) -> None:
    with whole_file(path) as unfinished:
        unfinished.write_bytes(estimation_bytes(estimation))


def _check_health(target: Target, seed: int, run: Run, make_runner: MakeRunner) -> None:
    """Raise an error that lists all that is wrong with `target`."""
    diagnoses = check_target(
        target,
        _CHECKED_EPISODES,
        seed,
        make_runner=lambda other: run if other is target else make_runner(other),
    )
    if is_unhealthy(diagnoses):
        bad = [one for one in diagnoses if one.level is Level.UNHEALTHY]
        raise UnhealthyTarget(
            "; ".join(f"{one.name}: {one.message}" for one in bad),
            "; ".join(one.hint for one in bad if one.hint),
        )
