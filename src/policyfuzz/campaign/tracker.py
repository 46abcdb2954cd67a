"""Keeps count of a campaign: its totals, and numbered records of findings and errors."""

import json
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import CRASHED, HUNG
from policyfuzz.execution.executor import WorkerStats
from policyfuzz.search.algorithm import Update
from policyfuzz.search.cases import Cases, Purpose
from policyfuzz.search.fuzzer import Fuzzer
from policyfuzz.store.records import (
    CONFIRMED,
    FLAKY,
    NEW,
    UNSOLVED,
    FailedEpisode,
    Finding,
    Progress,
    SeedTrial,
    Verdict,
)


@dataclass(slots=True)
class ProgressTracker:
    """Counts on from `earlier` totals. Campaign time runs from the moment the tracker is made."""

    earlier: Progress = field(default_factory=Progress)
    kinds: Sequence[str] = ()  #: of crashes, as the oracle names them
    next_finding: int = 1
    next_error: int = 1
    progress: Progress = field(init=False)
    _started_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.progress, self._started_at = self.earlier, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Campaign time, resumed parts included."""
        return self.earlier.seconds + time.perf_counter() - self._started_at

    def count_others(self, executions: Executions) -> None:
        """Count episodes that the search does not learn from."""
        self.progress = replace(self.progress, executions=self.progress.executions + len(executions))
        self.count_failures(executions)

    def count(self, cases: Cases, executions: Executions) -> None:
        """Count what the search asked for, and what was imported.

        A sample that could not be run is a failure only, since it might have crashed or not. One that crashed
        counts even if its second run does not: crashes by chance belong to the failure probability.
        """
        now, crashed = self.progress, executions.crashed
        is_known = executions.sound | crashed
        is_sample = np.isin(cases.purposes, (Purpose.SAMPLE, Purpose.EXPLORE))
        is_import = cases.purposes == Purpose.IMPORT
        is_mutant = ~(is_sample | is_import)
        self.progress = replace(
            now,
            batch=now.batch + 1,
            seconds=self.seconds,
            executions=now.executions + len(cases),
            samples=now.samples + int(np.count_nonzero(is_known & is_sample)),
            sample_crashes=now.sample_crashes + int(np.count_nonzero(crashed & is_sample)),
            mutants=now.mutants + int(np.count_nonzero(is_mutant)),
            mutant_crashes=now.mutant_crashes + int(np.count_nonzero(crashed & is_mutant)),
            imports=now.imports + int(np.count_nonzero(is_import)),
        )

    def count_verdicts(self, verdicts: Sequence[Verdict], imported: int) -> None:
        """Count findings that were run again. `imported` of those confirmed came from other instances."""
        now, statuses = self.progress, [one.status for one in verdicts]
        self.progress = replace(
            now,
            executions=now.executions + len(verdicts),
            findings=now.findings + statuses.count(CONFIRMED),
            distinct_findings=now.distinct_findings + sum(one.is_distinct for one in verdicts),
            imported_findings=now.imported_findings + imported,
            flaky=now.flaky + statuses.count(FLAKY),
            unsolved=now.unsolved + statuses.count(UNSOLVED),
        )

    def count_trials(self, runs: Executions, over: Sequence[SeedTrial]) -> None:
        """Count `runs` with other case seeds, and the trials that are `over`."""
        now, held = self.progress, sum(one.is_distinct for one in over)
        self.progress = replace(
            now,
            executions=now.executions + len(runs),
            distinct_findings=now.distinct_findings + held,
            lucky=now.lucky + len(over) - held,
        )

    def doubt(self, findings: int) -> None:
        """So many `findings` that counted as distinct do not, until they have been tried."""
        self.progress = replace(self.progress, distinct_findings=self.progress.distinct_findings - findings)

    def count_failures(self, executions: Executions) -> None:
        """Count episodes that could not be run, and are no findings."""
        now = self.progress
        kinds = [error.kind for row, error in executions.errors.items() if not executions.crashed[row]]
        hangs, crashes = kinds.count(HUNG), kinds.count(CRASHED)
        self.progress = replace(
            now,
            errors=now.errors + len(kinds) - hangs - crashes,
            hangs=now.hangs + hangs,
            simulator_crashes=now.simulator_crashes + crashes,
        )

    def record_search(self, fuzzer: Fuzzer, lineages: int, unconfirmed: int, in_trial: int) -> None:
        """Record how the search is doing."""
        validator = fuzzer.validator
        self.progress = replace(
            self.progress,
            lineages=lineages,
            unconfirmed=unconfirmed,
            in_trial=in_trial,
            corpus=len(fuzzer.corpus),
            drawn=validator.drawn,
            invalid=validator.invalid,
            unsolvable=validator.unsolvable,
            fresh_share=fuzzer.algorithm.fresh_share,
            fresh_threshold=fuzzer.algorithm.fresh_threshold,
        )

    def record_effort(self, spent: Mapping[str, float], worker_stats: WorkerStats) -> None:
        """Record where the time has gone since the start, and how busy workers were."""
        earlier = self.earlier
        activities: dict[str, Any] = {
            f"{name}_seconds": before + spent.get(name, 0.0) for name, before in earlier.time_split.items()
        }
        self.progress = replace(
            self.progress,
            workers=worker_stats.wanted,
            workers_ready=worker_stats.ready,
            worker_seconds=earlier.worker_seconds + worker_stats.worker_seconds,
            busy_seconds=earlier.busy_seconds + worker_stats.busy_seconds,
            restarts=earlier.restarts + worker_stats.restarts,
            **activities,
        )

    def findings(
        self,
        cases: Cases,
        executions: Executions,
        update: Update,
        origins: Sequence[str | None],
        outcomes: NDArray[np.int64],
        is_repeat: NDArray[np.bool_],
    ) -> list[Finding]:
        """Records of the `cases` that crashed, except repeats; these cases are the last that were counted.

        `origins` are those of all cases, `outcomes` (f,) hashes of the f that crashed, which are no findings
        where `is_repeat` (f,).
        """
        episodes_before = self.progress.executions - len(cases)
        places = np.flatnonzero(~is_repeat).tolist()
        first, self.next_finding = self.next_finding, self.next_finding + len(places)
        self.progress = replace(
            self.progress, repeats=self.progress.repeats + len(update.crashed) - len(places)
        )
        observed = update.observed
        return [
            Finding(
                id=number,
                status=NEW,
                is_distinct=False,
                is_novel=bool(observed.is_novel[place]),
                kind=self.kinds[int(executions.verdicts.kinds[row])],
                crash_step=int(executions.verdicts.steps[row]),
                episode_return=float(executions.returns[row]),
                margin=float(executions.verdicts.margins[row]),
                outcome=int(outcomes[place]),
                repeats=0,
                root=int(observed.roots[place]),
                behaviour=_as_text(observed.behaviours.descriptors[place]),
                reseeded=None,
                reseeded_crashes=None,
                survived_by=None,
                parent=_parent(cases, row),
                case_seed=int(cases.seeds[row]),
                batch=self.progress.batch,
                execution=episodes_before + row + 1,
                seconds=self.progress.seconds,
                origin=origins[row],
                input=cases.inputs[row],
            )
            for number, place in enumerate(places, first)
            for row in [int(update.crashed[place])]
        ]

    def failed(
        self, cases: Cases, executions: Executions, found: Mapping[int, int], repeats: Set[int]
    ) -> list[FailedEpisode]:
        """Records of the `cases` that could not be run; `found` gives the finding of a row, if it is one.

        Rows that are `repeats` of a finding are left out: they are counted with it.
        """
        # in the order of the batch, not in that of the failures
        errors = [(row, error) for row, error in sorted(executions.errors.items()) if row not in repeats]
        first, self.next_error = self.next_error, self.next_error + len(errors)
        return [
            FailedEpisode(
                id=number,
                kind=error.kind,
                step=error.step,
                text=error.text,
                purpose=Purpose(int(cases.purposes[row])).name.lower(),
                finding=found.get(row),
                case_seed=int(cases.seeds[row]),
                batch=self.progress.batch,
                execution=self.progress.executions,
                seconds=self.progress.seconds,
                input=cases.inputs[row],
            )
            for number, (row, error) in enumerate(errors, first)
        ]


def _as_text(descriptor: NDArray[np.float64]) -> str | None:
    """A behaviour descriptor (q,) as JSON, None if it is not known."""
    return None if np.isnan(descriptor).any() else json.dumps(descriptor.tolist())


def _parent(cases: Cases, row: int) -> int | None:
    """The corpus entry that the case at `row` was changed from, if any."""
    parent = int(cases.parents[row])
    return parent if parent >= 0 and cases.purposes[row] != Purpose.IMPORT else None
