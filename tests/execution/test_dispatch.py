"""The dispatcher over a pool without processes: nothing is lost, doubled, or blamed on the wrong case."""

import random
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import PolicyError, WorkersFailed
from policyfuzz.core.interfaces import CRASHED, HUNG
from policyfuzz.core.target import Runner
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.chunks import ChunkSizer
from policyfuzz.execution.dispatch import Dispatcher
from policyfuzz.execution.executor import TimeIsUp
from policyfuzz.execution.worker_pool import ChunkResult, WorkerLost, WorkerReady
from policyfuzz.search.cases import Cases

sys.path.insert(0, str(Path(__file__).parent))
from fake_pool import HANGER, INNOCENT, KILLER, REFUSED, FakePool, Walk, cases, walk

TIMEOUT = 10.0
#: What `WorkerLost` of the fake pool says, and what becomes of a case by its fault.
KINDS = {KILLER: CRASHED, HANGER: HUNG}


def dispatched(pool, workers=2):
    return Dispatcher(walk(), pool, workers, TIMEOUT, now=pool.clock)


def check_same(executions, batch: Cases) -> None:
    """Check that innocent rows are as in one process, and that the others got what they deserve."""
    faults = batch.inputs[:, 1]
    assert len(executions) == len(batch)
    errors = {row: error.kind for row, error in executions.errors.items()}
    assert errors == {row: KINDS[fault] for row, fault in enumerate(faults.tolist()) if fault in KINDS}
    good = np.flatnonzero(faults == INNOCENT)
    here = Runner(walk())(batch.inputs[good], batch.seeds[good])
    there = executions[good]
    for name in ("returns", "lengths"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    np.testing.assert_array_equal(there.verdicts.kinds, here.verdicts.kinds)
    np.testing.assert_array_equal(there.verdicts.steps, here.verdicts.steps)
    longest = here.states.shape[1]
    if len(good):
        np.testing.assert_array_equal(there.states[:, :longest], here.states)
        assert not there.states[:, longest:].any()


def random_batches(luck, faulty: float, faults) -> list[Cases]:
    sizes = [luck.choice((1, 2, 7, 64, 200)) for _ in range(luck.randint(1, 6))]
    return [
        cases([luck.choice(faults) if luck.random() < faulty else INNOCENT for _ in range(size)], luck)
        for size in sizes
    ]


def run_all(dispatcher, batches, window: int):
    """Yield a batch with its executions, with `window` batches in flight."""
    flying: deque[Cases] = deque()
    for batch in batches:
        dispatcher.submit(batch)
        flying.append(batch)
        if len(flying) == window:
            yield flying.popleft(), dispatcher.collect()
    while flying:
        yield flying.popleft(), dispatcher.collect()


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 5),
    window=st.integers(1, 3),
    faulty=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    faults=st.sampled_from([(KILLER,), (HANGER,), (KILLER, HANGER)]),
    starts_fail=st.sampled_from([0.0, 0.3]),
    node_failures=st.sampled_from([0.0, 0.1]),
    murders=st.sampled_from([0.0, 0.1]),
)
def test_whatever_happens_results_are_those_of_one_process(
    seed, workers, window, faulty, faults, starts_fail, node_failures, murders
):
    luck = random.Random(seed)
    pool = FakePool(luck, starts_fail, node_failures, murders)
    dispatcher = dispatched(pool, workers)
    batches = random_batches(luck, faulty, faults)
    collected = 0
    for batch, executions in run_all(dispatcher, batches, window):
        check_same(executions, batch)
        collected += 1
    assert collected == len(batches)
    stats = dispatcher.worker_stats
    assert (stats.wanted, stats.restarts) == (workers, pool.replaced)
    # what was lost counts as well
    assert pool.busy - 1e-9 <= stats.busy_seconds <= stats.worker_seconds + 1e-9
    assert pool.first_ready is not None
    assert stats.worker_seconds == pytest.approx(workers * (pool.now - pool.first_ready))
    assert stats.ready == sum(worker.is_ready for worker in pool.workers.values())
    dispatcher.close()
    assert pool.is_closed


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 4), murders=st.sampled_from([0.0, 0.1]))
def test_policy_error_is_raised_with_its_batch_and_is_the_first_by_row(seed, workers, murders):
    luck = random.Random(seed)
    dispatcher = dispatched(FakePool(luck, murders=murders), workers)
    good = cases([INNOCENT] * 100, luck)
    bad = cases([INNOCENT] * 60 + [REFUSED] + [INNOCENT] * 30 + [REFUSED], luck)
    for batch in (good, bad, good):
        dispatcher.submit(batch)
    check_same(dispatcher.collect(), good)
    with pytest.raises(PolicyError, match=f"refused {bad.inputs[60, 0]}"):
        dispatcher.collect()
    check_same(dispatcher.collect(), good)


@dataclass
class ScriptedPool:
    """Says what it is told to, and notes what it is given."""

    script: deque = field(default_factory=deque)
    now: float = 0.0
    started: list = field(default_factory=list)
    sent: list = field(default_factory=list)  #: (worker, inputs, seeds)
    killed: list = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def start(self, worker):
        self.started.append(worker)

    def send(self, worker, inputs, seeds):
        self.sent.append((worker, inputs, seeds))

    def wait(self, seconds):
        assert self.script, "waits for more than the script has"
        step = self.script.popleft()
        return step() if callable(step) else step

    def kill(self, worker):
        self.killed.append(worker)

    def answer(self, worker, inputs, seeds):
        return ChunkResult(worker, Runner(walk())(inputs, seeds), 0.01)

    def answers_all(self):
        """Answers to all that was sent to the latest worker."""
        return [self.answer(*work) for work in self.sent if work[0] == self.started[-1]]

    def later(self, seconds):
        self.now += seconds
        return []


def ready(*workers):
    return [WorkerReady(worker, Walk.signals) for worker in workers]


def test_lone_case_whose_worker_was_killed_from_outside_is_not_blamed():
    pool = ScriptedPool()
    batch = cases([INNOCENT])
    pool.script.extend([[], ready(0), [WorkerLost(0, "killed by SIGKILL")], ready(1)])
    dispatcher = dispatched(pool, 1)
    dispatcher.submit(batch)
    pool.script.append(pool.answers_all)
    check_same(dispatcher.collect(), batch)
    assert dispatcher.worker_stats.restarts == 1


def test_case_that_kills_two_workers_alone_is_crashed_with_the_last_words_of_the_second():
    pool = ScriptedPool()
    pool.script.extend([[], ready(0), [WorkerLost(0, "first")], ready(1), [WorkerLost(1, "second", step=3)]])
    dispatcher = dispatched(pool, 1)
    dispatcher.submit(cases([KILLER]))
    executions = dispatcher.collect()
    error = executions.errors[0]
    assert (error.kind, error.step, error.text) == (CRASHED, 3, "second")
    assert executions.lengths.tolist() == [4]
    assert np.isnan(executions.returns[0])


def test_node_failures_never_blame_a_case():
    pool = ScriptedPool()
    batch = cases([INNOCENT])
    pool.script.append([])
    for worker in range(6):
        pool.script.extend([ready(worker), [WorkerLost(worker, "machine gone", is_node_failure=True)]])
    pool.script.extend([ready(6), pool.answers_all])
    dispatcher = dispatched(pool, 1)
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)
    assert dispatcher.worker_stats.restarts == 6


def test_case_that_exceeds_the_timeout_alone_is_hung():
    pool = ScriptedPool()
    pool.script.extend(
        [
            [],
            ready(0),
            lambda: pool.later(TIMEOUT + 0.5),
            [WorkerLost(0, "in line 4 of swamp.py", step=6), *ready(1)],
            lambda: pool.later(TIMEOUT + 0.5),
            [WorkerLost(1, "in line 3 of swamp.py", step=5)],
        ]
    )
    dispatcher = dispatched(pool, 1)
    dispatcher.submit(cases([HANGER]))
    error = dispatcher.collect().errors[0]
    assert pool.killed == [0, 1], "once may be chance"
    assert (error.kind, error.step) == (HUNG, 5)
    assert error.text == "in line 3 of swamp.py\nno answer within 10 s"


def test_case_in_the_queue_of_a_hung_worker_is_not_blamed():
    pool = ScriptedPool()
    batch = cases([HANGER, INNOCENT])
    pool.script.append([])
    for worker in (0, 1):
        pool.script.extend([ready(worker), lambda: pool.later(TIMEOUT + 0.5), [WorkerLost(worker, "swamp")]])
    dispatcher = dispatched(pool, 1)
    dispatcher.submit(batch)
    pool.script.extend([ready(2), pool.answers_all])
    check_same(dispatcher.collect(), batch)


@pytest.mark.parametrize("sizes", [(2,), (1, 1)])
def test_answer_that_comes_while_its_worker_is_killed_does_not_blame_what_is_next(sizes):
    pool = ScriptedPool()
    batches = [cases([INNOCENT] * size, random.Random(size)) for size in sizes]
    dispatcher = dispatched(pool, 1)
    pool.script.extend([[] for _ in sizes])
    for batch in batches:
        dispatcher.submit(batch)
    pool.script.extend([ready(0), lambda: pool.later(TIMEOUT + 1)])
    pool.script.append(lambda: [pool.answer(*pool.sent[0]), WorkerLost(0, "killed")])
    pool.script.append(ready(1))
    pool.script.append(lambda: [pool.answer(*pool.sent[-1])])
    for batch in batches:
        check_same(dispatcher.collect(), batch)
    assert pool.killed == [0]


def test_killing_one_worker_slowly_does_not_make_others_overdue():
    pool = ScriptedPool()
    batch = cases([INNOCENT] * 3)
    dispatcher = dispatched(pool, 2)

    def kill(worker):
        pool.killed.append(worker)
        pool.now += 5.0  # until it has said where it was

    pool.kill = kill  # type: ignore[method-assign]
    # the second worker is ready, and gets the third case, half a time-out later than the first
    pool.script.extend([[], ready(0), lambda: pool.later(TIMEOUT / 2), ready(1)])
    pool.script.append(lambda: pool.later(TIMEOUT / 2 + 0.5))
    pool.script.append(lambda: [pool.answer(*pool.sent[2]), WorkerLost(0, "swamp")])
    pool.script.append(lambda: [pool.answer(*work) for work in pool.sent[3:]])
    dispatcher.submit(batch)
    executions = dispatcher.collect()
    assert pool.killed == [0]
    check_same(executions, batch)


def test_starts_that_fail_in_a_row_end_the_campaign_with_the_words_of_the_worker():
    pool = ScriptedPool()
    pool.script.extend([[WorkerLost(worker, "no licence for the simulator")] for worker in range(3)])
    dispatcher = dispatched(pool, 1)
    dispatcher.submit(cases([INNOCENT]))
    with pytest.raises(WorkersFailed, match="no licence for the simulator") as caught:
        dispatcher.collect()
    assert caught.value.exit_code == 3
    assert pool.started == [0, 1, 2]


def test_start_that_works_forgives_those_that_failed():
    pool = ScriptedPool()
    batch = cases([INNOCENT])
    pool.script.extend([[], [WorkerLost(0, "no")], [WorkerLost(1, "no")], ready(2)])
    pool.script.extend([[WorkerLost(2, "killed")], [WorkerLost(3, "no")], [WorkerLost(4, "no")], ready(5)])
    pool.script.append(pool.answers_all)
    dispatcher = dispatched(pool, 1)
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)


def test_worker_that_never_starts_is_given_up_while_others_work():
    pool = ScriptedPool()
    batch = cases([INNOCENT])
    dispatcher = dispatched(pool, 2)
    pool.script.extend([ready(0), [WorkerLost(1, "no")], [WorkerLost(2, "no")], [WorkerLost(3, "no")]])
    pool.script.append(lambda: [pool.answer(*pool.sent[0])])
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)
    assert pool.started == [0, 1, 2, 3]
    assert (dispatcher.worker_stats.wanted, dispatcher.worker_stats.ready) == (2, 1)
    # the last one that worked dies as well, and its replacement cannot be started
    pool.script.extend([[], [WorkerLost(0, "killed")], [WorkerLost(4, "the disk is full")]])
    dispatcher.submit(batch)
    with pytest.raises(WorkersFailed, match="the disk is full"):
        dispatcher.collect()


def test_workers_without_work_come_first_when_there_is_little():
    pool = ScriptedPool()
    pool.script.append(ready(0, 1, 2))
    dispatcher = dispatched(pool, 3)
    dispatcher.submit(cases([INNOCENT] * 3))
    assert sorted(worker for worker, _, _ in pool.sent) == [0, 1, 2]


def test_collecting_can_be_left_off_and_taken_up_again():
    pool = ScriptedPool()
    batch = cases([INNOCENT])
    pool.script.extend([[], ready(0), lambda: pool.later(3.0)])
    dispatcher = dispatched(pool, 1)
    dispatcher.submit(batch)
    with pytest.raises(TimeIsUp):
        dispatcher.collect(2.0)
    pool.script.append(pool.answers_all)
    check_same(dispatcher.collect(2.0), batch)


def test_no_cases_give_no_executions():
    dispatcher = dispatched(FakePool(random.Random(0)), 1)
    dispatcher.submit(cases([]))
    assert len(dispatcher.collect()) == 0


def test_simulating_is_the_time_until_results_are_there():
    clock = TimeSplit()
    pool = FakePool(random.Random(0))
    dispatcher = Dispatcher(walk(), pool, 1, TIMEOUT, clock, now=pool.clock)
    dispatcher.submit(cases([INNOCENT] * 5))
    dispatcher.collect()
    assert set(clock.seconds) == {"simulate"}


@given(
    workers=st.integers(1, 1000),
    timeout=st.floats(0.1, 3600),
    batch=st.integers(1, 10_000),
    learnt=st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1000)), max_size=8),
)
@example(workers=1, timeout=1.0, batch=1, learnt=[(1, 5e-324)])
def test_chunks_grow_slowly_and_stay_well_within_the_timeout(workers, timeout, batch, learnt):
    sizer = ChunkSizer(workers, timeout)
    assert sizer.chunk_size(batch) == 1, "nobody knows yet how long an episode takes"
    for count, seconds in learnt:
        sizer.learn(count, seconds)
    size = sizer.chunk_size(batch)
    assert 1 <= size <= max(4 * max((count for count, _ in learnt), default=0), 1)
    assert sizer.queue_depth in (1, 2)


@given(workers=st.integers(1, 64), seconds=st.floats(1e-7, 100), timeout=st.floats(0.1, 3600))
def test_chunks_of_steady_episodes_are_worth_a_message_and_in_time(workers, seconds, timeout):
    sizer = ChunkSizer(workers, timeout)
    batch = 512
    for _ in range(20):
        size = sizer.chunk_size(batch)
        sizer.learn(size, size * seconds)
    assert size == 1 or size * seconds <= timeout / 4 * (1 + 1e-9)
    fair = batch // (2 * workers)  # two pieces for each
    assert size >= min(fair, max(int(timeout / 4 / seconds), 1))
    assert size <= max(fair + 1, 0.005 / seconds + 1)


@given(workers=st.integers(1, 2000), batch=st.integers(1, 4096), batches=st.integers(1, 16))
def test_work_in_flight_makes_two_chunks_for_each_worker_as_far_as_it_goes(workers, batch, batches):
    sizer = ChunkSizer(workers, 3600.0)
    sizer.learn(batch, batch * 0.1)
    chunks = batches * -(-batch // sizer.chunk_size(batch, batches))
    assert chunks >= min(0.8 * 2 * workers, batch * batches)
    assert chunks <= max(2 * 2 * workers, batches)


def test_worker_gets_the_next_chunk_early_only_where_the_first_is_soon_done():
    sizer = ChunkSizer(2, 300.0)
    sizer.learn(1, 0.01)
    assert sizer.queue_depth == 2
    sizer.learn(1, 100.0)
    assert sizer.queue_depth == 1


def test_nobody_is_killed_when_the_whole_machine_has_stood_still():
    pool = ScriptedPool()
    batch = cases([INNOCENT])
    pool.script.extend([[], ready(0), lambda: pool.later(5 * TIMEOUT)])
    pool.script.append(lambda: [pool.answer(*pool.sent[0])])
    dispatcher = dispatched(pool, 1)
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)
    assert pool.killed == []


def test_time_in_which_nobody_listened_does_not_count():
    pool = ScriptedPool()
    batches = [cases([INNOCENT], random.Random(seed)) for seed in (0, 1)]
    dispatcher = dispatched(pool, 2)
    pool.script.extend([[], [], [*ready(0), *ready(1)], lambda: [pool.answer(*pool.sent[0])]])
    for batch in batches:
        dispatcher.submit(batch)
    check_same(dispatcher.collect(), batches[0])
    pool.now += 5 * TIMEOUT  # the search takes its time
    pool.script.extend([[], lambda: [pool.answer(*pool.sent[1])]])
    check_same(dispatcher.collect(), batches[1])
    assert pool.killed == []


def test_suspect_is_tried_again_by_a_worker_that_has_run_nothing():
    pool = ScriptedPool()
    batches = [cases([INNOCENT], random.Random(seed)) for seed in (0, 1)]
    dispatcher = dispatched(pool, 2)
    pool.script.extend([[], [], [*ready(0), *ready(1)]])
    for batch in batches:
        dispatcher.submit(batch)
    pool.script.append(lambda: [pool.answer(*pool.sent[1]), WorkerLost(0, "of old age")])
    pool.script.extend([[], ready(2), lambda: [pool.answer(*pool.sent[2])]])
    check_same(dispatcher.collect(), batches[0])
    check_same(dispatcher.collect(), batches[1])
    assert [worker for worker, _, _ in pool.sent] == [0, 1, 2], "worker 1 was free, but not new"


def test_starts_that_fail_are_no_reason_to_stop_while_others_may_get_ready():
    pool = ScriptedPool()
    batch = cases([INNOCENT])
    dispatcher = dispatched(pool, 4)
    pool.script.append([])
    pool.script.extend([[WorkerLost(worker, "port in use")] for worker in (0, 1, 2, 4, 5)])
    pool.script.extend([ready(3), lambda: [pool.answer(*pool.sent[-1])]])
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)
    assert pool.started == list(range(9)), "once one is ready, the others are tried again"
