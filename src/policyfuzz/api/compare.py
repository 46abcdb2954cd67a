"""Compares two policies from Python: on the findings of campaigns, and on a random pool."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from policyfuzz.api.progress import progress_bar
from policyfuzz.api.results import Result
from policyfuzz.api.subjects import as_target
from policyfuzz.campaign.events import Listener
from policyfuzz.campaign.launch import OWN_POLICY, check_references, launch
from policyfuzz.core.errors import CampaignError, UnhealthyTarget, UsageError
from policyfuzz.core.settings import Budget, CampaignOptions, Duration, StopReason, seconds_of
from policyfuzz.core.target import IN_MEMORY, Target
from policyfuzz.core.whole_file import whole_file
from policyfuzz.execution.executor import ExecutorChoice, choose_executor
from policyfuzz.report.comparison import Comparison, Pair, counted
from policyfuzz.report.ranking import ranked
from policyfuzz.report.tally import Searched, Tally
from policyfuzz.store.comparisons import FINDINGS_OF_A, FINDINGS_OF_B, Ending, endings_text, read_endings
from policyfuzz.store.reader import CampaignReader
from policyfuzz.targets.registry import ADAPTERS, load_for
from policyfuzz.targets.trust import require_trust
from policyfuzz.triage.compare import (
    Case,
    Contestant,
    cases_of,
    check_comparable,
    identity,
    pool_of,
    run_pairs,
)
from policyfuzz.triage.replay import check_same_code, target_of

#: Distinct findings of a campaign that are run by default, the worst ones.
MOST_FINDINGS = 2000
#: Seconds between two writings of the file, which holds all cases.
_SAVE_SECONDS = 1.0
#: Share of the pool above which episodes that cannot be run leave nothing to compare.
_UNHEALTHY_ERROR_SHARE = 0.5

#: Hears how many of how many cases have been run.
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two policies, in its target, and its campaign where there is one."""

    target: Target
    campaign: CampaignReader | None = None

    @property
    def name(self) -> str:
        """Names the policy for a reader."""
        return self.target.policy_uri or self.target.policy_name


def compare(
    first: Result | str | os.PathLike[str],
    second: Result | str | os.PathLike[str] | None = None,
    *,
    policy: Any = None,
    target: str | None = None,
    trust: bool = False,
    pool: int | None = None,
    top: int = MOST_FINDINGS,
    seed: int = 0,
    fuzz: str | os.PathLike[str] | None = None,
    force: bool = False,
    out: str | os.PathLike[str] | None = None,
    max_time: Duration | None = None,
    workers: int | None = None,
    executor: str | None = None,
    timeout: Duration | None = None,
    progress: bool = True,
) -> Comparison:
    """Say whether another policy fails less or more often than the one of the campaign `first`.

    B is `policy` in the same target, or the policy of the campaign `second`. A `policy` is a URI, or a
    `Target` that holds it, as `as_target` makes one of an environment and a model or function; where the
    target is no environment, an object with `begin` and `act` will do.

    Both run the `top` worst distinct findings of each campaign, and `pool` random inputs, by default as many
    as a campaign samples first; another `seed` draws others. `fuzz` names a folder for a campaign against B
    with the settings and the number of episodes of `first`; it is resumed if it is there.

    `out` is a file that keeps what has been run: the same call goes on from there. After `max_time` no
    further batch begins. `target` replaces the target that the campaigns name, `trust` allows their code.
    """
    choice = choose_executor(executor, workers, seconds_of(timeout))
    a, b = (None if one is None else _result(one, trust) for one in (first, second))
    assert a is not None
    check_question(b is not None, policy is not None, fuzz is not None)
    side = _side(a, target, choice)
    if b is not None:
        other = _side(b, target, choice)
    else:
        other = Side(_with_policy(side.target, policy, trust, choice))
    with _bar() if progress else _nothing() as told:
        if fuzz is not None:
            with progress_bar() as bar:
                listeners = (bar,) if progress else ()
                other = fuzzed(side, other.target, Path(fuzz), choice, trust or a.trust, force, listeners)
        where = None if out is None else Path(out)
        return compare_sides(side, other, choice, pool, top, seed, where, seconds_of(max_time), told)


def check_question(has_second: bool, has_policy: bool, has_fuzz: bool) -> None:
    """Refuse unless B is named in exactly one way."""
    if has_second == has_policy:
        given = "both a second campaign and a policy" if has_policy else "nothing"
        raise UsageError(
            f"{given} to compare with", "name a second campaign, or another policy (--policy), one of them"
        )
    if has_fuzz and has_second:
        raise UsageError(
            "a second campaign has been run already", "leave --fuzz out, or name a policy instead of it"
        )


def side_of(campaign: CampaignReader, trust: bool, target: str | None, choice: ExecutorChoice) -> Side:
    """The policy of `campaign`. Refuses a policy, code or inputs that have changed since.

    Code that the caller names himself as `target` may have changed.
    """
    loaded = target_of(campaign, None, trust, target, choice)
    if target is None:
        hint = "start a new campaign, or name the target with --target to compare on what it is now"
        check_same_code(campaign, loaded, hint)
    if changes := campaign.other_inputs(loaded.inputs):
        raise CampaignError(
            f"{campaign.folder} cannot be compared: {'; '.join(changes)}", "start a new campaign"
        )
    return Side(loaded, campaign)


def compare_sides(
    a: Side,
    b: Side,
    choice: ExecutorChoice,
    pool: int | None,
    top: int,
    seed: int,
    out: Path | None,
    max_seconds: float | None,
    told: Told,
) -> Comparison:
    """Run both sides on the findings of their campaigns and on the pool."""
    started = time.monotonic()
    check_comparable(a.target, b.target)
    if a.campaign and b.campaign and a.target.name != b.target.name:
        raise UsageError(
            f"{a.campaign.folder} is of {a.target.name}, and {b.campaign.folder} of {b.target.name}",
            "compare campaigns of one target; a default oracle may depend on the policy, so give both of them"
            " the same with --oracle",
        )
    cases = _planned(a, b, a.target.samples if pool is None else pool, top, seed)
    named = identity(a.target, b.target)
    if out is not None:
        a.target.check_identified()
        b.target.check_identified()
    endings = {} if out is None else read_endings(out, named)
    runs = (choice.make_runner(a.target), choice.make_runner(b.target))
    contestants = Contestant(runs[0], a.target.oracle.kinds), Contestant(runs[1], b.target.oracle.kinds)
    keys = [one.key for one in cases]
    done, saved_at = sum(key in endings for key in keys), -math.inf
    told(done, len(cases))
    try:
        for some in run_pairs(cases, endings, contestants, a.target.batch_size):
            endings |= some
            done += len(some)
            if time.monotonic() - saved_at >= _SAVE_SECONDS:
                _save(out, endings, named)
                saved_at = time.monotonic()
            told(done, len(cases))
            if max_seconds is not None and time.monotonic() - started >= max_seconds:
                break
    finally:
        _save(out, endings, named)
    pairs = [Pair(one, *endings[key]) for one, key in zip(cases, keys, strict=True) if key in endings]
    comparison = Comparison(
        target=a.target.name,
        a=a.name,
        b=b.name,
        groups=counted(pairs),
        planned=len(cases),
        of_solvable=a.target.solvable is not None,
        is_same_policy=_is_same_policy(a.target, b.target),
        searched=_searched(a, b),
        setting_differences=_setting_differences(a, b),
        policy_sha256=(a.target.policy_sha256, b.target.policy_sha256),
        pairs=tuple(pairs),
        dimensions=a.target.inputs.names,
    )
    _check_health(comparison)
    _save(out, endings, named, Tally.summary(comparison))
    return comparison


def _save(
    out: Path | None,
    endings: Mapping[str, tuple[Ending, Ending]],
    named: str,
    summary: Mapping[str, Any] | None = None,
) -> None:
    """Write all that has been run to the file `out`, if there is one; at the end, what it came to."""
    if out is not None and endings:
        with whole_file(out) as unfinished:
            unfinished.write_text(endings_text(endings, named, summary))


def _is_same_policy(a: Target, b: Target) -> bool:
    is_known = bool(a.policy_sha256) and a.is_identified and b.is_identified
    return is_known and a.policy_sha256 == b.policy_sha256


def fuzzed(
    a: Side,
    target: Target,
    folder: Path,
    choice: ExecutorChoice,
    trust: bool,
    force: bool,
    listeners: Sequence[Listener],
) -> Side:
    """The side of `target` after a campaign against it in `folder`, as the one of `a` was.

    A campaign that is there already is resumed, and one that has ended is left as it is.
    """
    assert a.campaign is not None
    config = a.campaign.config
    names = config.references.splitlines()
    named = ";".join(one for one in names if one != OWN_POLICY)
    require_trust(f"the campaign in {a.campaign.folder}", None, named, trust)
    references = [
        load_for(choice, a.target.name, None if one == OWN_POLICY else one, trust, will_check=False)
        for one in names
    ]
    check_references(target, references)
    launched = launch(
        target,
        Budget(executions=a.campaign.progress().executions),
        CampaignOptions.of(config),
        policy=target.policy_uri,
        folder=folder,
        resume=folder.exists(),
        references=references,
        make_executor=choice.make_executor,
        make_runner=choice.make_runner,
        listeners=listeners,
        force=force,
        discard_unhealthy=True,
    )
    if launched.reason is StopReason.UNHEALTHY:
        bad = "; ".join(one.message for one in launched.bad_diagnoses)
        raise UnhealthyTarget(f"policy B cannot be fuzzed with a meaningful result: {bad}", "add --force")
    if launched.reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return Side(target, CampaignReader(launched.folder))


def _planned(a: Side, b: Side, pool: int, top: int, seed: int) -> list[Case]:
    """All cases, findings first; a case that is in two groups counts in both."""
    cases: list[Case] = []
    for side, group in ((a, FINDINGS_OF_A), (b, FINDINGS_OF_B)):
        if side.campaign is not None:
            cases += cases_of(list(ranked(side.campaign, "severity", True, top, 0)), group)
    return cases + pool_of(a.target, pool, seed)


def _searched(a: Side, b: Side) -> tuple[Searched, ...]:
    if a.campaign is None or b.campaign is None:
        return ()
    totals = [(one, one.progress()) for one in (a.campaign, b.campaign)]
    return tuple(
        Searched(str(one.folder), now.executions, now.distinct_findings, now.lineages) for one, now in totals
    )


def _setting_differences(a: Side, b: Side) -> tuple[str, ...]:
    """What the campaigns differ in besides their policy."""
    if a.campaign is None or b.campaign is None:
        return ()
    mine = a.campaign.config
    its = replace(b.campaign.config, policy=mine.policy, policy_sha256=mine.policy_sha256)
    return tuple(mine.differences(its))


def _check_health(comparison: Comparison) -> None:
    pool = comparison.pool
    for name, errors in (("A", pool.errors_of_a), ("B", pool.errors_of_b)):
        if errors > _UNHEALTHY_ERROR_SHARE * pool.cases:
            raise UnhealthyTarget(
                f"{errors:,} of {pool.cases:,} random episodes of policy {name} could not be run to the end",
                "see why with policyfuzz check, or with --timeout if they hang",
            )


def _result(given: Result | str | os.PathLike[str], trust: bool) -> Result:
    return given if isinstance(given, Result) else Result(Path(given), trust=trust)


def _side(result: Result, target: str | None, choice: ExecutorChoice) -> Side:
    campaign = CampaignReader(result.folder)
    if result.target is not None and target is None:
        return Side(result.target, campaign)
    return side_of(campaign, result.trust, target, choice)


def _with_policy(target: Target, policy: Any, trust: bool, choice: ExecutorChoice) -> Target:
    """`target` with another `policy`: a URI, something of this process, or a `Target` that holds it."""
    if isinstance(policy, Target):
        return policy
    if isinstance(policy, str):
        return load_for(choice, target.name, policy, trust, will_check=False)
    if target.name.partition(":")[0] in (IN_MEMORY, *ADAPTERS):
        raise UsageError(
            f"{target.name} does not say how a {type(policy).__name__} acts in its environment",
            "give policy=pf.as_target(ENVIRONMENT, policy, ...), with what the campaign was given",
        )
    return as_target(target, policy, trust=trust)


@contextmanager
def _nothing() -> Iterator[Told]:
    yield lambda _done, _total: None


@contextmanager
def _bar() -> Iterator[Told]:
    """A bar on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        with _nothing() as told:
            yield told
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("comparing", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
