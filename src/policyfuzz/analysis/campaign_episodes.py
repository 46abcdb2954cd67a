"""The episodes of a campaign, run again: those that its file knows, or every single one.

A campaign file holds the inputs that the search kept and those that crashed, and no state sequences. What was
neither kept nor crashed is gone; but the same settings give the same campaign, so it can be repeated.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.engine import Campaign
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import Budget
from policyfuzz.core.target import Run, Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.executor import Executor, ExecutorChoice, WorkerStats
from policyfuzz.search.cases import Cases
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import FLAKY
from policyfuzz.store.writer import CampaignWriter

#: Called with how many episodes had been run by then (n,), and what came of these.
See = Callable[[NDArray[np.int64], Executions], None]


@dataclass(frozen=True, slots=True)
class KnownCases:
    """Cases of a campaign that its file knows."""

    numbers: NDArray[np.int64]  #: (n,) how many episodes had been run by then; of a seed, by its batch's end
    inputs: NDArray[np.float64]  #: (n, d)
    seeds: NDArray[np.uint64]  #: (n,)
    known: int  #: how many there are, of which these were chosen


def count_known(campaign: CampaignReader, until: int) -> int:
    """How many seeds and findings of the first `until` episodes the file of `campaign` holds."""
    with campaign.snapshot():
        return len(_findings(campaign, until)) + int(np.count_nonzero(_early_seeds(campaign, until)))


def known_cases(campaign: CampaignReader, until: int, share: float, seed: int) -> KnownCases:
    """A `share` of the seeds and findings of the first `until` episodes of `campaign`, in any order.

    All are equally likely to be chosen. Findings that did not crash again are left out.
    """
    with campaign.snapshot():
        ends = _ends_of_batches(campaign)
        findings, seeds = _findings(campaign, until), _early_seeds(campaign, until)
        known = len(findings) + int(np.count_nonzero(seeds))
        is_chosen = _chosen(known, round(share * known), np.random.default_rng([seed, campaign.config.seed]))
        wanted = np.zeros(len(seeds), np.bool_)
        wanted[np.flatnonzero(seeds)] = is_chosen[len(findings) :]
        parts = [_cases_of(findings[is_chosen[: len(findings)]], campaign)]
        start = 0
        for inputs, columns in campaign.corpus_parts():
            rows = wanted[start : start + len(inputs)]
            start += len(inputs)
            numbers = _numbers(columns["batch"][rows], ends)
            parts.append((numbers, inputs[rows], columns["case_seed"][rows].astype(np.uint64)))
    numbers, inputs, case_seeds = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return KnownCases(numbers, inputs, case_seeds, known)


def run_cases(cases: KnownCases, run: Run, at_once: int, see: See) -> None:
    """Run `cases`, so many `at_once`, and let `see` look at them."""
    for start in range(0, len(cases.numbers), at_once):
        some = slice(start, start + at_once)
        see(cases.numbers[some], run(cases.inputs[some], cases.seeds[some]))


def repeat_campaign(
    campaign: CampaignReader, target: Target, executor: ExecutorChoice, until: int, see: See
) -> None:
    """Run the first `until` episodes of `campaign` once more, as they came, and let `see` look at them all.

    Raises if it cannot be repeated, or turns out not to be the same campaign.
    """
    _check_repeatable(campaign)
    config = campaign.config

    def watched(of_target: Target, clock: TimeSplit) -> Executor:
        return _Watched(executor.make_executor(of_target, clock), see)

    with tempfile.TemporaryDirectory() as folder:
        store = CampaignWriter.create(Path(folder) / "repeated", config, target.inputs)
        try:
            again = Campaign(
                target,
                store,
                Budget(executions=until),
                accept_unhealthy=True,
                make_executor=watched,
                make_runner=executor.make_runner,
            )
            again.run()
            # near the end of its budget a campaign asks for less, so that it can confirm what it finds
            judged = until - (config.window + 1) * config.batch_size
            is_same = _outcomes(store, judged) == _outcomes(campaign, judged)
        finally:
            store.close()
    if not is_same:
        raise CampaignError(
            f"the campaign in {campaign.folder} cannot be repeated: other findings came out",
            "a time limit may have shortened its first samples, or the code has changed since; leave out"
            " --every-episode",
        )


class _Watched:
    """An executor whose results are looked at when they are collected."""

    def __init__(self, executor: Executor, see: See) -> None:
        self._executor, self._see, self._done = executor, see, 0

    def submit(self, cases: Cases) -> None:
        self._executor.submit(cases)

    def collect(self, seconds: float | None = None) -> Executions:
        executions = self._executor.collect(seconds)
        first = self._done + 1
        self._done += len(executions)
        self._see(np.arange(first, self._done + 1), executions)
        return executions

    @property
    def worker_stats(self) -> WorkerStats:
        return self._executor.worker_stats

    def close(self) -> None:
        self._executor.close()


def _check_repeatable(campaign: CampaignReader) -> None:
    reason = None
    if campaign.progress().imports:
        reason = "it imported cases from other instances"
    elif campaign.config.references:
        reason = "reference policies judged its findings"
    elif "migrated_from" in campaign.about:
        reason = "an earlier version ran it"
    if reason is not None:
        raise CampaignError(
            f"the campaign in {campaign.folder} cannot be repeated: {reason}",
            "leave out --every-episode: then what its file knows is looked at",
        )


def _outcomes(campaign: CampaignReader, until: int) -> list[tuple[int, int | None]]:
    rows = campaign.iterate("findings", "execution <= ?", (until,))
    return [(row["execution"], row["outcome"]) for row in rows]


def _ends_of_batches(campaign: CampaignReader) -> dict[int, int]:
    """Number of a batch to how many episodes had been run at its end."""
    return {row["id"]: row["executions"] for row in campaign.iterate("batches")}


def _numbers(batches: NDArray[np.int64], ends: dict[int, int]) -> NDArray[np.int64]:
    try:
        return np.array([ends[batch] for batch in batches.tolist()], np.int64)
    except KeyError as error:
        raise CampaignError(
            f"a seed names batch {error}, which does not exist", "the file is damaged"
        ) from error


def _early_seeds(campaign: CampaignReader, until: int) -> NDArray[np.bool_]:
    """(n,) True for seeds of the first `until` episodes that are not findings as well."""
    ends = _ends_of_batches(campaign)
    parts = [
        (_numbers(columns["batch"], ends) <= until) & (columns["is_crash"] == 0)
        for _, columns in campaign.corpus_parts()
    ]
    return np.concatenate(parts)


def _findings(campaign: CampaignReader, until: int) -> NDArray[np.int64]:
    """(n,) numbers of the findings of the first `until` episodes."""
    return campaign.numbers("findings", "execution <= ? AND status != ?", (until, FLAKY))


def _cases_of(
    findings: NDArray[np.int64], campaign: CampaignReader
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64]]:
    """Number of episodes, input and case seed of some `findings` (n,)."""
    wanted = set(findings.tolist())
    rows = [row for row in campaign.iterate("findings") if row["id"] in wanted] if wanted else []
    inputs = [[row[name] for name in campaign.input_columns] for row in rows]
    return (
        np.array([row["execution"] for row in rows], np.int64),
        np.array(inputs, np.float64).reshape(len(rows), len(campaign.input_columns)),
        np.array([row["case_seed"] for row in rows], np.uint64),
    )


def _chosen(count: int, most: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(count,) True for `most` of them, all equally likely, or for all if there are no more."""
    chosen = np.ones(count, np.bool_)
    if count > most:
        chosen[rng.permutation(count)[most:]] = False
    return chosen
