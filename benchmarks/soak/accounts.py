"""Checks the accounts of a campaign on the flaky simulator: what is stored, what was run, what had to be."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.soak.flaky_simulator import BEGAN, DIED, ENDED, RECORD, Fate, fates, keys
from policyfuzz import CampaignReader
from policyfuzz.campaign.health import REPLAYS
from policyfuzz.campaign.seed_trials import ROUND_RUNS

#: What the campaign file calls them.
KINDS = {
    Fate.RAISES: "raised",
    Fate.GIVES_NAN: "numbers",
    Fate.HANGS_IN_PYTHON: "hung",
    Fate.HANGS_IN_C: "hung",
    Fate.SEGFAULTS: "crashed",
    Fate.IS_KILLED: "crashed",
    Fate.EXITS: "crashed",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """The same number from two sources."""

    what: str
    stored: float
    other: float | None  #: None if there is nothing to compare with
    source: str  #: of the other

    @property
    def is_right(self) -> bool:
        """True where both agree, or there is nothing to compare."""
        return self.other is None or self.stored == self.other


@dataclass(frozen=True, slots=True)
class Journal:
    """What the simulators wrote down."""

    began: set[int]  #: keys of cases
    ended: set[int]
    deaths: int  #: of processes for no reason
    processes: int

    @classmethod
    def read(cls, folder: Path) -> "Journal":
        """All that is in `folder`."""
        stages: dict[int, set[int]] = {BEGAN: set(), ENDED: set()}
        deaths, files = 0, sorted(folder.iterdir())
        for file in files:
            data = file.read_bytes()
            whole = len(data) // RECORD.size * RECORD.size  # the last may have been cut short by a kill
            for key, _fate, stage in RECORD.iter_unpack(data[:whole]):
                if stage == DIED:
                    deaths += 1
                else:
                    stages[stage].add(key)
        return cls(stages[BEGAN], stages[ENDED], deaths, len(files))


def compare(campaign: Path, journal: Journal) -> list[Entry]:
    """Every number that has more than one source."""
    reader = CampaignReader(campaign)
    try:
        return list(_entries(reader, campaign, journal))
    finally:
        reader.close()


def _entries(reader: CampaignReader, campaign: Path, journal: Journal) -> Iterator[Entry]:
    progress, findings = reader.progress(), reader.findings()
    numbers = np.fromiter(sorted(journal.began), np.uint64)
    due = dict(zip(numbers.tolist(), fates(numbers).tolist(), strict=True))
    failing = {key: KINDS[Fate(fate)] for key, fate in due.items() if Fate(fate) in KINDS}
    wanted = Counter(failing.values())
    confirmed = sum(finding.status != "new" for finding in findings)
    asked = _asked(campaign)
    yield Entry("episodes asked for", progress.executions, asked, "steps between stored batches")
    again = f"cases that began, + {confirmed} confirmations, {REPLAYS} replays"
    yield Entry("episodes asked for", progress.executions, len(due) + confirmed + REPLAYS, again)
    # a sample that could not be run says nothing about the policy, and is counted as an error only
    lost = sum(
        one.purpose in ("sample", "explore") and one.finding is None for one in reader.failed_episodes()
    )
    # the health check runs as many with other case seeds as it replays
    purposes = progress.samples + lost + progress.mutants + confirmed + 2 * REPLAYS + _tried(reader)
    by_purpose = "samples, mutants, confirmations, replays, other seeds"
    yield Entry("episodes asked for", progress.executions, purposes, by_purpose)
    parts = progress.errors + progress.hangs + progress.simulator_crashes
    completed = len(journal.ended) + confirmed + REPLAYS
    yield Entry(
        "episodes completed", progress.executions - parts, completed, "cases that ended, the same added"
    )
    ordinary = wanted["raised"] + wanted["numbers"]
    yield Entry("errors", progress.errors, ordinary, "cases whose input says so")
    yield Entry("hangs", progress.hangs, wanted["hung"], "cases whose input says so")
    yield Entry("crashes", progress.simulator_crashes, wanted["crashed"], "cases whose input says so")
    failed = {_key(one.input, one.case_seed): one.kind for one in reader.failed_episodes()}
    yield Entry("rows of errors", reader.count("errors"), len(failed), "different cases among them")
    yield Entry(
        "cases with another error than their own", len(failed.items() ^ failing.items()), 0, "must be"
    )
    yield Entry("failing cases that ended", len(journal.ended & failing.keys()), 0, "must be")
    strangers = [_key(one.input, one.case_seed) not in journal.ended for one in findings]
    strangers += [key not in journal.ended for key in _seeds(reader)]
    yield Entry("findings and seeds that never ended", sum(strangers), 0, "must be")
    yield Entry("flaky findings", progress.flaky, 0, "must be")
    yield Entry("findings", progress.findings, None, "")
    yield Entry("deaths for no reason", journal.deaths, None, "")
    yield Entry("worker processes", journal.processes, None, "")
    yield Entry("workers replaced", progress.restarts, None, "")


def _tried(reader: CampaignReader) -> int:
    """Runs of findings with other case seeds: a trial has a second round if the first has a crash."""
    tried = [finding for finding in reader.findings() if finding.reseeded is not None]
    over = sum(ROUND_RUNS * (2 if finding.reseeded_crashes else 1) for finding in tried)
    # of each that is not over: rounds that were begun, and runs of the last one that are done
    state = reader.state()["judge.trials.trials"]
    return over + int((ROUND_RUNS * (state[:, 3] - 1) + state[:, 5]).sum())


def _asked(campaign: Path) -> int:
    """Episodes of all batches, added up one by one; the replays of the health check came before the first."""
    with sqlite3.connect(campaign / "campaign.sqlite") as connection:
        totals = [row[0] for row in connection.execute("SELECT executions FROM batches ORDER BY id")]
        ids = [row[0] for row in connection.execute("SELECT id FROM batches ORDER BY id")]
    assert ids == list(range(1, len(ids) + 1)), "a batch is missing"
    steps = np.diff([0, *totals])
    assert (steps > 0).all(), "a batch has asked for nothing"
    return int(steps.sum())


def _key(row: NDArray[np.float64], seed: int) -> int:
    return int(keys(row[None], np.array([seed], np.uint64))[0])


def _seeds(reader: CampaignReader) -> list[int]:
    inputs, columns = reader.corpus()
    return [int(key) for key in keys(inputs, columns["case_seed"].astype(np.uint64))]
