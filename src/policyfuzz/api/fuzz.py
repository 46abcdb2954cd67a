"""Runs a campaign from Python."""

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policyfuzz.api.progress import progress_bar
from policyfuzz.api.results import Result
from policyfuzz.api.subjects import Input, as_target
from policyfuzz.campaign.events import Event, Examined, Listener
from policyfuzz.campaign.health import is_unhealthy
from policyfuzz.campaign.launch import OWN_POLICY, launch, stored_policies
from policyfuzz.core.errors import UnhealthyTarget, UsageError
from policyfuzz.core.oracle import Oracle
from policyfuzz.core.settings import Budget, CampaignOptions, Duration, StopReason, seconds_of
from policyfuzz.core.target import Diagnosis, Level, Target, split_options
from policyfuzz.execution.executor import choose_executor
from policyfuzz.report.watching import check_watchers, watching
from policyfuzz.targets.trust import require_trust


class HealthWarning(UserWarning):
    """The health check of a target found something doubtful."""


def fuzz(
    target: Any,
    policy: Any = None,
    *,
    oracle: str | Oracle | None = None,
    input: Input | None = None,  # noqa: A002 - as --input on the command line
    bounds: str | float | None = None,
    horizon: int | None = None,
    options: Mapping[str, str] | None = None,
    trust: bool = False,
    reference: Any = None,
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
    log: str | Sequence[str] = (),
    on_finding: str | None = None,
    force: bool = False,
    strategy: str | None = None,
    seed: int | None = None,
    batch: int | None = None,
    window: int | None = None,
    samples: int | None = None,
    sensitivity: str | None = None,
    quantile: float | None = None,
    freshness: str | None = None,
    tau: float | None = None,
    gamma: float | None = None,
    components: int | None = None,
    children: int | None = None,
    when_empty: str | None = None,
    radius: float | None = None,
) -> Result:
    """Search for valid inputs of `target`, solvable ones if it tests that, that make its `policy` crash.

    See `as_target` for what the arguments up to `trust` may be. `reference` is another policy, or a list of
    them: only crashes that one of them survives are findings.
    Without a limit (`max_time`, `max_execs`, `max_findings`) the campaign runs until you interrupt it, which
    returns what it has found.

    `workers` processes run the episodes, or what `executor` names: "inline", "processes" or "ray:ADDRESS";
    the findings are the same. An episode in a worker that takes longer than `timeout` counts as hung.

    The campaign goes into the folder `out`, or into one that is removed when this process ends; `resume`
    continues the one in `out`. With `sync` it goes into that folder, under the name `out` or one that is
    free, and syncs with the other instances there. Every callback gets every event, and
    may raise `Stop`. `log="tensorboard"` logs curves, histograms and pictures to the folder tensorboard of
    the campaign. `on_finding` is a command that is run for each new mode, as by `--on-finding`.
    A target that fails its health check raises `UnhealthyTarget`; `force` continues anyway.
    What the check finds doubtful, such as a key that `info` never has, is a Python warning.

    The arguments from `strategy` on are the options of `policyfuzz fuzz` with these names; `CampaignOptions`
    describes them.
    """
    budget = Budget(seconds_of(max_time), max_execs, max_findings)
    logs = (log,) if isinstance(log, str) else tuple(log)
    check_watchers(logs, on_finding)
    executor_choice = choose_executor(executor, workers, seconds_of(timeout))
    listeners = _listeners(callbacks)
    folder, shared = (None if path is None else Path(path) for path in (out, sync))
    references = _listed(reference)
    if resume and isinstance(target, str):
        stored, stored_references = stored_policies(folder, shared)
        if policy is None:
            policy = stored
            require_trust(f"the campaign in {folder}", None, policy, trust)
        if not references:
            references = stored_references
            named = ";".join(one for one in references if one != OWN_POLICY)
            require_trust(f"the campaign in {folder}", None, named, trust)

    def made(policy: Any, oracle: str | Oracle | None) -> Target:
        return as_target(
            target,
            policy,
            oracle=oracle,
            input=input,
            bounds=bounds,
            horizon=horizon,
            options=options,
            trust=trust,
            make_runner=executor_choice.make_runner,
            executor=executor_choice,
        )

    subject = made(policy, oracle)
    # a default oracle may depend on the policy, so references get the one that was chosen
    chosen = split_options(subject.name)[1].get("oracle") if oracle is None else oracle
    others = [made(None if one == OWN_POLICY else one, chosen) for one in references]
    watched = watching(subject, logs, on_finding, _warn)
    with watched as watchers, progress_bar() if progress else nullcontext() as bar:
        launched = launch(
            subject,
            budget,
            CampaignOptions(
                strategy=strategy,
                seed=seed,
                batch=batch,
                window=window,
                samples=samples,
                sensitivity=sensitivity,
                quantile=quantile,
                freshness=freshness,
                tau=tau,
                gamma=gamma,
                components=components,
                children=children,
                when_empty=when_empty,
                radius=radius,
            ),
            policy=policy if isinstance(policy, str) else None,
            folder=folder if folder or shared or resume else _temporary_folder(),
            sync=shared,
            resume=resume,
            references=others,
            make_executor=executor_choice.make_executor,
            make_runner=executor_choice.make_runner,
            listeners=(*(() if bar is None else (bar,)), _Warner(force), *watchers, *listeners),
            force=force,
            discard_unhealthy=True,
        )
    if launched.reason is StopReason.UNHEALTHY:
        raise _unhealthy(subject, launched.bad_diagnoses)
    return Result(launched.folder, subject, trust)


@dataclass(frozen=True, slots=True)
class _Warner:
    """Makes a Python warning of each doubt of the health check, unless an error will list them."""

    force: bool

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Examined) or (is_unhealthy(event.diagnoses) and not self.force):
            return
        for one in event.diagnoses:
            if one.level is not Level.GOOD:
                hint = f" (hint: {one.hint})" if one.hint else ""
                warnings.warn(f"{one.name}: {one.message}{hint}", HealthWarning, stacklevel=2)


def _warn(note: str) -> None:
    warnings.warn(note, RuntimeWarning, stacklevel=2)


def _listeners(callbacks: Iterable[Listener] | Listener) -> tuple[Listener, ...]:
    """`callbacks`, functions or objects that can be called, or one of them."""
    listeners = tuple(callbacks) if isinstance(callbacks, Iterable) else (callbacks,)
    for listener in listeners:
        if not callable(listener):
            raise UsageError(
                f"a callback is a {type(listener).__name__}, which cannot be called",
                "expected a function of one event, or an object with __call__(event)",
            )
    return listeners


def _listed(reference: Any) -> list[Any]:
    """`reference`, one policy or a list of them, as a list."""
    if reference is None:
        return []
    return list(reference) if isinstance(reference, list | tuple) else [reference]


def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="policyfuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _unhealthy(target: Target, bad: list[Diagnosis]) -> UnhealthyTarget:
    """The error that lists all `bad` diagnoses."""
    lines = [f"  {one.level}: {one.message}" + (f"\n    hint: {one.hint}" if one.hint else "") for one in bad]
    return UnhealthyTarget(
        "\n".join([f"{target.name} cannot be fuzzed with a meaningful result:", *lines]),
        "fix that, or continue anyway with force=True",
    )
