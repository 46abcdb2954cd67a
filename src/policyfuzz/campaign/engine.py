"""The campaign loop: ask, run, tell, store; once round per batch."""

import json
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from policyfuzz.campaign.events import (
    BatchDone,
    BatchEpisodes,
    Event,
    Examined,
    Listener,
    Started,
    Stopped,
    Waiting,
)
from policyfuzz.campaign.exhaustion import Exhaustion
from policyfuzz.campaign.health import (
    MIN_FIRST_EPISODES,
    NOISE,
    REPLAYS,
    Nominal,
    Pace,
    examine,
    is_unhealthy,
    run_nominal,
    with_other_seeds,
)
from policyfuzz.campaign.judge import Besides, FindingsJudge
from policyfuzz.campaign.outcomes import outcome_hashes
from policyfuzz.campaign.queues import ImportQueue, import_share, storable
from policyfuzz.campaign.sync.synchronizer import Synchronizer
from policyfuzz.campaign.tracker import ProgressTracker
from policyfuzz.core.errors import CampaignError, UnhealthyTarget
from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import Budget, StopReason
from policyfuzz.core.target import Diagnosis, Level, MakeRunner, Runner, Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.executor import Executor, InlineExecutor, MakeExecutor, TimeIsUp
from policyfuzz.search.algorithm import Update
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.search.cases import Cases, Purpose
from policyfuzz.search.corpus import COLUMNS, Corpus
from policyfuzz.search.fuzzer import Fuzzer
from policyfuzz.search.state import substate
from policyfuzz.search.strategies import make_fuzzer
from policyfuzz.store.records import (
    BatchRecord,
    FailedEpisode,
    Finding,
    Progress,
    Verdict,
)
from policyfuzz.store.writer import CampaignWriter

#: Seconds, or share of the time limit, that episodes in flight get after the limit.
_GRACE_SECONDS, _GRACE_SHARE = 2.0, 0.05
#: Shares of the time limit: for the first batch, for all first samples, and for any batch, if episodes are
#: so slow that these would take longer.
_FIRST_BATCH_SHARE, _SAMPLING_SHARE, _BATCH_SHARE = 1 / 8, 1 / 4, 1 / 8
#: Largest share of a batch that tries findings with other case seeds while the search goes on.
_LARGEST_TRIAL_SHARE = 1 / 4
#: Seconds without a worker after which the user hears of it.
_WAITING_SECONDS = 10.0


@dataclass(slots=True)
class Campaign:
    """A running campaign: everything between ask and store.

    The search sees results in the order of its questions, `config.window` batches later, whatever
    runs them; so the findings depend on the configuration alone.
    """

    target: Target
    store: CampaignWriter
    budget: Budget
    listener: Listener = lambda _event: None
    accept_unhealthy: bool = False  #: continue although the health check failed
    make_executor: MakeExecutor = InlineExecutor
    make_runner: MakeRunner = Runner  #: for the few episodes of further health checks
    synchronizer: Synchronizer | None = None  #: imports from other instances; None: nothing depends on them
    #: The same target with other policies: a crash that none of them survives is no finding.
    references: Sequence[Target] = ()
    _clock: TimeSplit = field(init=False, default_factory=TimeSplit)
    _executor: Executor = field(init=False)
    _fuzzer: Fuzzer = field(init=False)
    _judge: FindingsJudge = field(init=False)
    _imports: ImportQueue = field(init=False)
    _exhaustion: Exhaustion = field(init=False)
    _in_flight: deque[Cases] = field(init=False, default_factory=deque)
    _tracker: ProgressTracker = field(init=False, default_factory=ProgressTracker)
    _is_emitting: bool = field(init=False, default=False)  #: a listener is at work, or has failed
    #: Warnings and worse of the health check.
    bad_diagnoses: list[Diagnosis] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        config, space = self.store.config, self.target.inputs
        self._fuzzer = make_fuzzer(
            config.strategy, self.target, config.search, config.seed, self._clock, config.distinct_radius
        )
        self._judge = FindingsJudge(self.store, self._fuzzer, self.references, self.make_runner, self._clock)
        self._imports = ImportQueue(len(space.dimensions), imports_seeds=self._fuzzer.learns)
        self._exhaustion = Exhaustion.of(space, self.target.solvable)

    @property
    def progress(self) -> Progress:
        """Totals so far."""
        return self._tracker.progress

    def run(self) -> StopReason:
        """Run until the budget is spent; Ctrl-C stops at once, and all finished batches are saved."""
        self._tracker = ProgressTracker(self.store.progress(), self.target.oracle.kinds)
        self._executor = self.make_executor(self.target, self._clock)
        try:
            self.store.set_stop_reason(None)
            wanted = self._executor.worker_stats.wanted
            self._emit(Started(self.store.config, self.budget, str(self.store.folder), self.progress, wanted))
            # one core per process: matrices this small only lose by being shared among threads
            with threadpool_limits(1):
                reason = self._run()
        except KeyboardInterrupt:
            self._tracker.progress = self.store.progress()
            reason = StopReason.INTERRUPTED
        except UnhealthyTarget:
            self.store.set_stop_reason(StopReason.UNHEALTHY.value)
            raise
        finally:
            self._executor.close()
        self.store.set_stop_reason(reason.value)
        if reason is StopReason.EXHAUSTED and self.target.inputs.sampler is None:  # all are equally likely
            self.store.set_starts(len(self._exhaustion.starts), self._exhaustion.crashing)
        if self.progress.batch:
            self._sync(reason)
        self._emit(Stopped(reason, self.progress))
        return reason

    def _run(self) -> StopReason:
        if self.progress.batch:
            with self._blamed_on_the_stored_state(self.progress.batch):
                self._restore()
                return self._loop()
        else:
            try:
                if not self._begin():
                    return StopReason.UNHEALTHY
            except TimeIsUp:  # not even the first batch could be run
                return StopReason.MAX_TIME
        return self._loop()

    @contextmanager
    def _blamed_on_the_stored_state(self, restored: int) -> Iterator[None]:
        """Blame the file for what fails until the batches in flight after the `restored` one are stored.

        The arrays of the search are data from a file. Whether they fit together shows when they are used.
        """
        try:
            yield
        except (LookupError, ValueError, TypeError, ArithmeticError, AttributeError, MemoryError) as error:
            if self._is_emitting or self.progress.batch > restored + self.store.config.window:
                raise
            raise CampaignError(
                f"the stored state of {self.store.folder} is not complete: {error!r:.200}",
                hint="the file was changed or damaged; its findings can still be read",
            ) from error

    def _loop(self) -> StopReason:
        reason = self._reason_to_stop()
        while True:
            self._sync()
            while len(self._in_flight) < self.store.config.window and (cases := self._next_batch(reason)):
                self._submit(cases)
            if not self._in_flight:
                return reason or StopReason.SEARCH_ENDED
            try:
                executions = self._collect(self._time_left())
            except TimeIsUp:  # a resumed campaign runs again what is in flight
                return StopReason.MAX_TIME
            self._absorb(self._in_flight.popleft(), executions)
            reason = reason or self._reason_to_stop()

    def _reason_to_stop(self) -> StopReason | None:
        """The limit that has been reached, or that there is nothing left to try."""
        if reason := self.budget.limit_reached(self.progress):
            return reason
        return StopReason.EXHAUSTED if self._exhaustion.is_over else None

    def _time_left(self) -> float | None:
        """Seconds until episodes in flight are abandoned; None without a time limit."""
        if self.budget.seconds is None:
            return None
        grace = max(_GRACE_SECONDS, _GRACE_SHARE * self.budget.seconds)
        return max(0.0, self.budget.seconds + grace - self._tracker.seconds)

    def _sync(self, reason: StopReason | None = None) -> None:
        """Sync with other instances when it is time to, and at the end."""
        if self.synchronizer is not None and (reason or self.synchronizer.is_due):
            with self._clock.activity("store"):
                synced = self.synchronizer.sync(self._imports, self.progress, reason)
            self._emit(synced)

    def _next_batch(self, reason: StopReason | None) -> Cases | None:
        """Findings to confirm; unless there is a `reason` to stop, what the search asks for and imports."""
        size, executed = self._batch_size, self.progress.executions
        in_flight = sum(len(cases) for cases in self._in_flight)
        limit, reruns = self.budget.executions, 1 + len(self.references)
        # a confirmed finding is also run with the references, those in flight included
        due = sum(int(np.count_nonzero(cases.purposes == Purpose.CONFIRM)) for cases in self._in_flight)
        left = reruns * size if limit is None else limit - executed - in_flight - (reruns - 1) * due
        left = max(left, 0)
        confirm = self._judge.confirmations.take(min(size, left // reruns))
        room = min(size - len(confirm), left - reruns * len(confirm))
        reseed = self._judge.trials.take(
            room if reason else min(room, max(1, int(_LARGEST_TRIAL_SHARE * size)))
        )
        asked = imported = Cases.none(len(self.target.inputs.dimensions))
        if reason is None:
            # many findings on trial must not stop the search
            trials = 2 * len(reseed) + min(self._judge.trials.waiting, int(_LARGEST_TRIAL_SHARE * left))
            reserved = reruns * len(self._judge.confirmations) + trials
            room = self.budget.room(size - len(confirm) - len(reseed), executed, in_flight, reserved, reruns)
            if self._fuzzer.is_warm:  # the first samples are waited for, and not mixed with others
                imported = self._imports.take(import_share(executed + in_flight, room))
            room -= len(imported)
            if not (in_flight or len(confirm) or len(reseed) or len(imported)) and left < reruns:
                room = left  # too little to confirm anything
            asked = self._fuzzer.ask(room) if room > 0 else asked
        cases = Cases.concatenate([confirm, reseed, asked, imported])
        return cases if len(cases) else None

    @property
    def _batch_size(self) -> int:
        """Episodes of a batch; fewer if only time limits the campaign and a whole one would take too long."""
        size, seconds = self.store.config.batch_size, self.budget.seconds
        if seconds is None or self.budget.executions is not None:
            return size
        affordable = int(_BATCH_SHARE * seconds * self.progress.executions_per_second)
        return min(size, max(affordable, self._executor.worker_stats.wanted))

    def _submit(self, cases: Cases) -> None:
        self._in_flight.append(cases)
        self._executor.submit(cases)

    def _begin(self) -> bool:
        """Run the first batch, which is all samples. False, and nothing is stored, if it is unhealthy."""
        limit = self.budget.executions
        replays = REPLAYS if limit is None else min(REPLAYS, limit // 4)
        # a small batch cannot tell a policy that always crashes from one that sometimes does
        first = max(self.store.config.batch_size, MIN_FIRST_EPISODES)
        room = self.budget.room(first, 2 * replays, 0, 0, 1 + len(self.references))
        cases = self._fuzzer.ask(room)
        pace = self._pace
        run = self._run_now if pace is None else pace.of_cases(self._run_now)
        if pace is not None and self.target.compiles:
            self._compile(cases[: pace.least])
        nominal = run_nominal(cases, run, self._fuzzer.validator.valid_rate, replays, self.target)
        if pace is not None and self.budget.seconds is not None:
            count = len(nominal.executions)
            fewer = max(count, int(_SAMPLING_SHARE * self.budget.seconds * count / nominal.seconds))
            if count < len(cases) or fewer < (self._fuzzer.samples or 0):
                self._fuzzer.limit_samples(fewer, not_run=len(cases) - count)
            cases = cases[:count]
        make_runner = self.make_runner if pace is None else pace.of_runners(self.make_runner)
        diagnoses = examine(self.target, nominal, make_runner)
        for own in (one.counts for one in diagnoses if one.counts):
            self.store.note("own_crashes", json.dumps(dict(own)))
        self.bad_diagnoses = [one for one in diagnoses if one.level is not Level.GOOD]
        self._emit(Examined(diagnoses))
        self._note_seed(nominal)
        if is_unhealthy(diagnoses) and not self.accept_unhealthy:
            for runs in (nominal.executions, *nominal.others):
                self._tracker.count_others(runs)
            self._tracker.record_search(self._fuzzer, 0, 0, 0)
            return False
        rows = np.arange(len(nominal.replayed))
        besides = [Besides(rows, cases[rows], nominal.replayed)]
        if nominal.reseeded is not None:
            besides.append(Besides(rows, with_other_seeds(cases[rows]), nominal.reseeded))
        self._absorb(cases, nominal.executions, besides)
        return True

    def _compile(self, cases: Cases) -> None:
        """Run `cases` before time begins to count: on a busy machine, compiling may take a minute."""
        self._executor.submit(cases)
        executions = self._collect(None)
        self._clock.seconds.clear()
        self._tracker = ProgressTracker(self.store.progress(), self.target.oracle.kinds)
        self._tracker.count_others(executions)

    def _note_seed(self, nominal: Nominal) -> None:
        """Note what the case seed does, and let the search know."""
        self.store.note("case_seed", nominal.case_seed)
        self._fuzzer.is_noisy = nominal.case_seed == NOISE

    @property
    def _pace(self) -> Pace | None:
        """How many episodes the start of a campaign may take where only time limits it."""
        if self.budget.seconds is None or self.budget.executions is not None:
            return None
        return Pace(_FIRST_BATCH_SHARE * self.budget.seconds, self._executor.worker_stats.wanted)

    def _run_now(self, cases: Cases) -> Executions:
        self._executor.submit(cases)
        return self._collect(self._time_left())

    def _collect(self, seconds: float | None) -> Executions:
        """Results of the oldest batch in flight; emits `Waiting` while no worker can run it."""
        end = math.inf if seconds is None else time.monotonic() + seconds
        while True:
            try:
                return self._executor.collect(min(_WAITING_SECONDS, max(0.0, end - time.monotonic())))
            except TimeIsUp:
                if time.monotonic() >= end:
                    raise
                worker_stats = self._executor.worker_stats
                if not worker_stats.ready:
                    self._emit(Waiting(worker_stats.wanted))

    def _absorb(self, cases: Cases, executions: Executions, besides: Sequence[Besides] = ()) -> None:
        """Learn from a batch, store it, tell the listener; some of its cases were run `besides`."""
        confirmed, reseeded = (
            int(np.count_nonzero(cases.purposes == purpose)) for purpose in (Purpose.CONFIRM, Purpose.RESEED)
        )
        known = confirmed + reseeded  # they come first, in this order
        # first, because it may show that the seed makes noise
        trials, credited = self._judge.luck(
            cases[confirmed:known], executions[confirmed:known], self._tracker
        )
        verdicts, compared = self._judge.verdicts(cases[:confirmed], executions[:confirmed], self._tracker)
        searched, results = cases[known:], executions[known:]
        self._exhaustion.learn(cases, executions)
        with self._clock.activity("store"):
            crashed = np.flatnonzero(results.crashed)
            outcomes = outcome_hashes(results, crashed)
            is_repeat = self._judge.outcomes.add(outcomes)
        update = self._fuzzer.tell(searched, results, crashed[is_repeat])
        measured = np.union1d(update.measured, credited[~np.isin(credited, update.entries)])
        update = replace(update, measured=measured)
        with self._clock.activity("store"):
            self._tracker.count(searched, results)
            self._tracker.count_failures(executions)
            origins = self._origins(searched)
            findings = self._tracker.findings(searched, results, update, origins, outcomes, is_repeat)
            besides = [*besides, *compared]  # these were run after the batch
            for part in besides:
                self._tracker.count_others(part.executions)
            rows = update.crashed[~is_repeat]
            self._judge.add(findings, results[rows].outcomes, searched.emitters[rows])
            found = {row: int(cases.parents[row]) for row in range(known)}
            found |= {known + int(row): one.id for row, one in zip(rows, findings, strict=True)}
            repeats = set((known + crashed[is_repeat]).tolist())
            failed = [
                one
                for part in (Besides(np.arange(len(cases)), cases, executions), *besides)
                for one in self._tracker.failed(part.cases, part.executions, *part.places(found, repeats))
            ]
            judge = self._judge
            self._tracker.record_search(
                self._fuzzer, len(judge.lineages), len(judge.confirmations), len(judge.trials)
            )
            self._tracker.record_effort(self._clock.seconds, self._executor.worker_stats)
            record = self._record(searched, update, findings, verdicts, failed, origins)
            repeated = outcomes[is_repeat].tolist()
            self.store.commit(replace(record, trials=trials, repeated=repeated))
        episodes = BatchEpisodes(
            results.returns,
            results.verdicts.margins,
            np.isin(searched.purposes, (Purpose.SAMPLE, Purpose.EXPLORE)),
            self._fuzzer.emitter_counts(searched),
        )
        self._emit(BatchDone(self.progress, findings, failed, verdicts, trials, episodes))

    def _origins(self, cases: Cases) -> list[str | None]:
        """Names of the instances that cases were taken from, None for those of this one."""
        origins: list[str | None] = [None] * len(cases)
        for row in np.flatnonzero(cases.purposes == Purpose.IMPORT).tolist():
            origins[row] = self._imports.source(int(cases.parents[row])).name
        return origins

    def _record(
        self,
        cases: Cases,
        update: Update,
        findings: list[Finding],
        verdicts: list[Verdict],
        failed: list[FailedEpisode],
        origins: list[str | None],
    ) -> BatchRecord:
        corpus, entries = self._fuzzer.corpus, update.entries
        energy = corpus.column("energy")[update.measured]
        return BatchRecord(
            progress=self.progress,
            findings=findings,
            verdicts=verdicts,
            failed=failed,
            seed_inputs=cases.inputs[update.kept],
            seed_columns={name: corpus.column(name)[entries] for name in COLUMNS},
            seed_origins=[origins[row] for row in update.kept.tolist()],
            first_seed=int(entries[0]) if len(entries) else 0,
            energies=list(zip(energy.tolist(), update.measured.tolist(), strict=True)),
            state=self._state(),
        )

    def _state(self) -> dict[str, NDArray[Any]]:
        state: dict[str, NDArray[Any]] = {
            "in_flight": np.array([len(self._in_flight)]),
        }
        for number, cases in enumerate(self._in_flight):
            state |= cases.state(f"in_flight{number}.")
        state |= {f"fuzzer.{name}": array for name, array in self._fuzzer.state().items()}
        state |= {f"judge.{name}": array for name, array in self._judge.state().items()}
        state |= {f"imports.{name}": array for name, array in self._imports.state().items()}
        state |= {f"exhaustion.{name}": array for name, array in self._exhaustion.state().items()}
        return state

    def _restore(self) -> None:
        """Continue exactly where the last stored batch ended."""
        state = self.store.state()
        dimensions = len(self.target.inputs.dimensions)
        corpus = Corpus(dimensions)
        for inputs, columns in self.store.corpus_parts():
            corpus.append(self._in_range(inputs), columns)
        novel, descriptors = self.store.novel_findings(DESCRIPTOR_SIZE)
        self._fuzzer.restore(substate("fuzzer.", state), corpus, self._in_range(novel), descriptors)
        self._judge.restore(substate("judge.", state))
        self._imports.restore(substate("imports.", state))
        self._exhaustion.restore(substate("exhaustion.", state))
        self._tracker.next_finding = (self.store.last_number("findings") or 0) + 1
        self._tracker.next_error = (self.store.last_number("errors") or 0) + 1
        for number in range(int(state["in_flight"][0])):
            if len(cases := storable(Cases.from_state(state, f"in_flight{number}.", dimensions))):
                self._submit(cases)

    def _in_range(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """`inputs` (n, d) from the file, whose values must be possible ones."""
        for dimension, values in zip(self.target.inputs.dimensions, inputs.T, strict=True):
            if not dimension.contains(values).all():
                raise ValueError(f"an input has an impossible {dimension.name}")
        return inputs

    def _emit(self, event: Event) -> None:
        self._is_emitting = True
        self.listener(event)
        self._is_emitting = False
