"""Runs a campaign from Python."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from policyfuzz.api.durations import Duration, seconds_of
from policyfuzz.api.instances import instance_folder, new_instance
from policyfuzz.api.listening import Audience
from policyfuzz.api.progress import progress_bar
from policyfuzz.api.results import Result
from policyfuzz.api.stores import new_store, resumed_store
from policyfuzz.api.subjects import Input, as_target
from policyfuzz.campaign.budget import Budget, StopReason
from policyfuzz.campaign.engine import Campaign
from policyfuzz.campaign.events import Listener
from policyfuzz.campaign.sync.synchronizer import Synchronizer
from policyfuzz.core.errors import CampaignError, UnhealthyTarget, UsageError
from policyfuzz.core.target import Diagnosis, Target
from policyfuzz.execution.choice import choose_executor
from policyfuzz.store.schema import FILE_NAME
from policyfuzz.store.writer import CampaignWriter


def fuzz(
    target: Any,
    policy: Any = None,
    *,
    oracle: str | None = None,
    input: Input | None = None,  # noqa: A002 - as --input on the command line
    horizon: int | None = None,
    options: Mapping[str, str] | None = None,
    trust: bool = False,
    strategy: str | None = None,
    seed: int | None = None,
    max_time: Duration | None = None,
    max_execs: int | None = None,
    max_findings: int | None = None,
    workers: int | None = None,
    executor: str | None = None,
    timeout: Duration | None = None,
    out: str | os.PathLike[str] | None = None,
    sync: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = True,
    callbacks: Iterable[Listener] | Listener = (),
    force: bool = False,
    **settings: Any,
) -> Result:
    """Search for valid, solvable inputs of `target` that make its `policy` crash.

    What `target`, `policy`, `oracle`, `input`, `horizon`, `options` and `trust` may be is told by
    `as_target`. Further `settings` are those of the command line: batch, window, samples, sensitivity,
    quantile, tau, gamma, components and radius. Without a limit it runs until it is interrupted, which gives
    what it has.

    Episodes are run by `workers` processes, or by what `executor` names: "inline", "processes" or
    "ray:ADDRESS"; the findings are the same. There an episode that takes longer than `timeout` is hung.

    The campaign goes into the folder `out`, or into one that is removed when this process ends; `resume` goes
    on with the one in `out`. With `sync` it goes into that folder, under the name `out` or one that is free,
    and exchanges what it finds with the other instances there. Every callback is told every event, and may
    raise `Stop`. A target that fails its health check raises `UnhealthyTarget`, unless by `force`.
    """
    budget = Budget(seconds_of(max_time), max_execs, max_findings)
    runs_by = choose_executor(executor, workers, seconds_of(timeout))
    audience = Audience.of(callbacks)
    subject = as_target(
        target,
        policy,
        oracle=oracle,
        input=input,
        horizon=horizon,
        options=options,
        trust=trust,
        make_runner=runs_by.make_runner,
    )
    uri = policy if isinstance(policy, str) else None
    open_store = _resumed if resume else _created
    store = open_store(subject, uri, out, sync, {**settings, "strategy": strategy, "seed": seed})
    try:
        campaign = Campaign(
            subject,
            store,
            budget,
            accept_unhealthy=force,
            make_executor=runs_by.make_executor,
            make_runner=runs_by.make_runner,
        )
        campaign.synchronizer = None if sync is None else Synchronizer(store, subject)
        with ExitStack() as stack:
            shown = (stack.enter_context(progress_bar()),) if progress else ()
            campaign.listener = Audience((*shown, *audience.listeners))
            reason = campaign.run()
        if reason is StopReason.UNHEALTHY:
            store.set_stop_reason(None)  # nothing is kept of it: the folder can be used again
            raise _unhealthy(subject, campaign.bad_diagnoses)
    finally:
        store.close_or_discard()
    return Result(store.folder, subject, trust)


def _created(
    target: Target,
    policy: str | None,
    out: str | os.PathLike[str] | None,
    sync: str | os.PathLike[str] | None,
    settings: Mapping[str, Any],
) -> CampaignWriter:
    if sync is not None:
        return new_instance(target, policy, Path(sync), None if out is None else Path(out), settings)
    folder = _temporary_folder() if out is None else Path(out)
    if (folder / FILE_NAME).exists():
        raise CampaignError(
            f"{folder} already holds a campaign", "go on with it by resume=True, or choose another"
        )
    return new_store(target, policy, folder, settings)


def _resumed(
    target: Target,
    policy: str | None,
    out: str | os.PathLike[str] | None,
    sync: str | os.PathLike[str] | None,
    settings: Mapping[str, Any],
) -> CampaignWriter:
    if out is None:
        raise UsageError("resume needs to know which campaign", "give its folder: out=...")
    folder = Path(out) if sync is None else instance_folder(Path(sync), Path(out))
    return resumed_store(target, policy, folder, settings)


def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="policyfuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _unhealthy(target: Target, bad: list[Diagnosis]) -> UnhealthyTarget:
    """The error that tells all `bad` diagnoses."""
    told = [f"  {one.level}: {one.message}" + (f"\n    hint: {one.hint}" if one.hint else "") for one in bad]
    return UnhealthyTarget(
        "\n".join([f"{target.name} cannot be fuzzed with a meaningful result:", *told]),
        "mend that, or go on all the same by force=True",
    )
