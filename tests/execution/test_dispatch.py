"""The dispatcher over a crew without processes: nothing is lost, doubled, or blamed on the wrong case."""

import random
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import PolicyError, WorkersFailed
from policyfuzz.core.interfaces import CRASHED, HUNG
from policyfuzz.core.target import Runner
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.chunks import Pace
from policyfuzz.execution.dispatch import Dispatcher
from policyfuzz.execution.executor import TimeIsUp
from policyfuzz.execution.pool import Answer, Lost, Ready
from policyfuzz.search.cases import Cases

sys.path.insert(0, str(Path(__file__).parent))
from fake_crew import HANGER, INNOCENT, KILLER, REFUSED, FakeCrew, Walk, cases, walk

TIMEOUT = 10.0
#: What `Lost` of the fake crew says, and what becomes of a case by its fault.
KINDS = {KILLER: CRASHED, HANGER: HUNG}


def dispatched(crew, workers=2):
    return Dispatcher(walk(), crew, workers, TIMEOUT, now=crew.clock)


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


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 5),
    window=st.integers(1, 3),
    faulty=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    faults=st.sampled_from([(KILLER,), (HANGER,), (KILLER, HANGER)]),
    starts_fail=st.sampled_from([0.0, 0.3]),
    blameless=st.sampled_from([0.0, 0.1]),
    murders=st.sampled_from([0.0, 0.1]),
)
def test_whatever_happens_results_are_those_of_one_process(
    seed, workers, window, faulty, faults, starts_fail, blameless, murders
):
    luck = random.Random(seed)
    crew = FakeCrew(luck, starts_fail, blameless, murders)
    dispatcher = dispatched(crew, workers)
    batches = random_batches(luck, faulty, faults)
    collected = 0
    for batch, executions in run_all(dispatcher, batches, window):
        check_same(executions, batch)
        collected += 1
    assert collected == len(batches)
    workforce = dispatcher.workforce
    assert (workforce.wanted, workforce.restarts) == (workers, crew.replaced)
    # what was lost counts as well
    assert crew.busy - 1e-9 <= workforce.busy_seconds <= workforce.worker_seconds + 1e-9
    assert crew.first_ready is not None
    assert workforce.worker_seconds == pytest.approx(workers * (crew.now - crew.first_ready))
    assert workforce.ready == sum(member.is_ready for member in crew.members.values())
    dispatcher.close()
    assert crew.is_closed


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 4), murders=st.sampled_from([0.0, 0.1]))
def test_policy_error_is_raised_with_its_batch_and_is_the_first_by_row(seed, workers, murders):
    luck = random.Random(seed)
    dispatcher = dispatched(FakeCrew(luck, murders=murders), workers)
    good = cases([INNOCENT] * 100, luck)
    bad = cases([INNOCENT] * 60 + [REFUSED] + [INNOCENT] * 30 + [REFUSED], luck)
    for batch in (good, bad, good):
        dispatcher.submit(batch)
    check_same(dispatcher.collect(), good)
    with pytest.raises(PolicyError, match=f"refused {bad.inputs[60, 0]}"):
        dispatcher.collect()
    check_same(dispatcher.collect(), good)


@dataclass
class ScriptedCrew:
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
        return Answer(worker, Runner(walk())(inputs, seeds), 0.01)

    def answers_all(self):
        """Answers to all that was sent to the latest worker."""
        return [self.answer(*work) for work in self.sent if work[0] == self.started[-1]]

    def later(self, seconds):
        self.now += seconds
        return []


def ready(*workers):
    return [Ready(worker, Walk.signals) for worker in workers]


def test_lone_case_whose_worker_was_killed_from_outside_is_not_blamed():
    crew = ScriptedCrew()
    batch = cases([INNOCENT])
    crew.script.extend([[], ready(0), [Lost(0, "killed by SIGKILL")], ready(1)])
    dispatcher = dispatched(crew, 1)
    dispatcher.submit(batch)
    crew.script.append(crew.answers_all)
    check_same(dispatcher.collect(), batch)
    assert dispatcher.workforce.restarts == 1


def test_case_that_kills_two_workers_alone_is_crashed_with_the_last_words_of_the_second():
    crew = ScriptedCrew()
    crew.script.extend([[], ready(0), [Lost(0, "first")], ready(1), [Lost(1, "second", step=3)]])
    dispatcher = dispatched(crew, 1)
    dispatcher.submit(cases([KILLER]))
    executions = dispatcher.collect()
    error = executions.errors[0]
    assert (error.kind, error.step, error.text) == (CRASHED, 3, "second")
    assert executions.lengths.tolist() == [4]
    assert np.isnan(executions.returns[0])


def test_blameless_deaths_never_blame_a_case():
    crew = ScriptedCrew()
    batch = cases([INNOCENT])
    crew.script.append([])
    for worker in range(6):
        crew.script.extend([ready(worker), [Lost(worker, "machine gone", is_blameless=True)]])
    crew.script.extend([ready(6), crew.answers_all])
    dispatcher = dispatched(crew, 1)
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)
    assert dispatcher.workforce.restarts == 6


def test_case_that_exceeds_the_timeout_alone_is_hung():
    crew = ScriptedCrew()
    crew.script.extend(
        [
            [],
            ready(0),
            lambda: crew.later(TIMEOUT + 0.5),
            [Lost(0, "in line 4 of swamp.py", step=6), *ready(1)],
            lambda: crew.later(TIMEOUT + 0.5),
            [Lost(1, "in line 3 of swamp.py", step=5)],
        ]
    )
    dispatcher = dispatched(crew, 1)
    dispatcher.submit(cases([HANGER]))
    error = dispatcher.collect().errors[0]
    assert crew.killed == [0, 1], "once may be chance"
    assert (error.kind, error.step) == (HUNG, 5)
    assert error.text == "in line 3 of swamp.py\nno answer within 10 s"


def test_case_in_the_queue_of_a_hung_worker_is_not_blamed():
    crew = ScriptedCrew()
    batch = cases([HANGER, INNOCENT])
    crew.script.append([])
    for worker in (0, 1):
        crew.script.extend([ready(worker), lambda: crew.later(TIMEOUT + 0.5), [Lost(worker, "swamp")]])
    dispatcher = dispatched(crew, 1)
    dispatcher.submit(batch)
    crew.script.extend([ready(2), crew.answers_all])
    check_same(dispatcher.collect(), batch)


@pytest.mark.parametrize("sizes", [(2,), (1, 1)])
def test_answer_that_comes_while_its_worker_is_killed_does_not_blame_what_is_next(sizes):
    crew = ScriptedCrew()
    batches = [cases([INNOCENT] * size, random.Random(size)) for size in sizes]
    dispatcher = dispatched(crew, 1)
    crew.script.extend([[] for _ in sizes])
    for batch in batches:
        dispatcher.submit(batch)
    crew.script.extend([ready(0), lambda: crew.later(TIMEOUT + 1)])
    crew.script.append(lambda: [crew.answer(*crew.sent[0]), Lost(0, "killed")])
    crew.script.append(ready(1))
    crew.script.append(lambda: [crew.answer(*crew.sent[-1])])
    for batch in batches:
        check_same(dispatcher.collect(), batch)
    assert crew.killed == [0]


def test_killing_one_worker_slowly_does_not_make_others_overdue():
    crew = ScriptedCrew()
    batch = cases([INNOCENT] * 3)
    dispatcher = dispatched(crew, 2)

    def kill(worker):
        crew.killed.append(worker)
        crew.now += 5.0  # until it has said where it was

    crew.kill = kill
    # the second worker is ready, and gets the third case, half a time-out later than the first
    crew.script.extend([[], ready(0), lambda: crew.later(TIMEOUT / 2), ready(1)])
    crew.script.append(lambda: crew.later(TIMEOUT / 2 + 0.5))
    crew.script.append(lambda: [crew.answer(*crew.sent[2]), Lost(0, "swamp")])
    crew.script.append(lambda: [crew.answer(*work) for work in crew.sent[3:]])
    dispatcher.submit(batch)
    executions = dispatcher.collect()
    assert crew.killed == [0]
    check_same(executions, batch)


def test_starts_that_fail_in_a_row_end_the_campaign_with_the_words_of_the_worker():
    crew = ScriptedCrew()
    crew.script.extend([[Lost(worker, "no licence for the simulator")] for worker in range(3)])
    dispatcher = dispatched(crew, 1)
    dispatcher.submit(cases([INNOCENT]))
    with pytest.raises(WorkersFailed, match="no licence for the simulator") as caught:
        dispatcher.collect()
    assert caught.value.exit_code == 3
    assert crew.started == [0, 1, 2]


def test_start_that_works_forgives_those_that_failed():
    crew = ScriptedCrew()
    batch = cases([INNOCENT])
    crew.script.extend([[], [Lost(0, "no")], [Lost(1, "no")], ready(2)])
    crew.script.extend([[Lost(2, "killed")], [Lost(3, "no")], [Lost(4, "no")], ready(5)])
    crew.script.append(crew.answers_all)
    dispatcher = dispatched(crew, 1)
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)


def test_place_that_never_gets_a_worker_is_given_up_while_others_work():
    crew = ScriptedCrew()
    batch = cases([INNOCENT])
    dispatcher = dispatched(crew, 2)
    crew.script.extend([ready(0), [Lost(1, "no")], [Lost(2, "no")], [Lost(3, "no")]])
    crew.script.append(lambda: [crew.answer(*crew.sent[0])])
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)
    assert crew.started == [0, 1, 2, 3]
    assert (dispatcher.workforce.wanted, dispatcher.workforce.ready) == (2, 1)
    # the last one that worked dies as well, and its replacement cannot be started
    crew.script.extend([[], [Lost(0, "killed")], [Lost(4, "the disk is full")]])
    dispatcher.submit(batch)
    with pytest.raises(WorkersFailed, match="the disk is full"):
        dispatcher.collect()


def test_workers_without_work_come_first_when_there_is_little():
    crew = ScriptedCrew()
    crew.script.append(ready(0, 1, 2))
    dispatcher = dispatched(crew, 3)
    dispatcher.submit(cases([INNOCENT] * 3))
    assert sorted(worker for worker, _, _ in crew.sent) == [0, 1, 2]


def test_collecting_can_be_left_off_and_taken_up_again():
    crew = ScriptedCrew()
    batch = cases([INNOCENT])
    crew.script.extend([[], ready(0), lambda: crew.later(3.0)])
    dispatcher = dispatched(crew, 1)
    dispatcher.submit(batch)
    with pytest.raises(TimeIsUp):
        dispatcher.collect(2.0)
    crew.script.append(crew.answers_all)
    check_same(dispatcher.collect(2.0), batch)


def test_no_cases_give_no_executions():
    dispatcher = dispatched(FakeCrew(random.Random(0)), 1)
    dispatcher.submit(cases([]))
    assert len(dispatcher.collect()) == 0


def test_simulating_is_the_time_until_results_are_there():
    clock = TimeSplit()
    crew = FakeCrew(random.Random(0))
    dispatcher = Dispatcher(walk(), crew, 1, TIMEOUT, clock, now=crew.clock)
    dispatcher.submit(cases([INNOCENT] * 5))
    dispatcher.collect()
    assert set(clock.seconds) == {"simulate"}


@given(
    workers=st.integers(1, 1000),
    timeout=st.floats(0.1, 3600),
    batch=st.integers(1, 10_000),
    learnt=st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1000)), max_size=8),
)
def test_chunks_grow_slowly_and_stay_well_within_the_timeout(workers, timeout, batch, learnt):
    pace = Pace(workers, timeout)
    assert pace.chunk_size(batch) == 1, "nobody knows yet how long an episode takes"
    for count, seconds in learnt:
        pace.learn(count, seconds)
    size = pace.chunk_size(batch)
    assert 1 <= size <= max(4 * max((count for count, _ in learnt), default=0), 1)
    assert pace.depth in (1, 2)


@given(workers=st.integers(1, 64), seconds=st.floats(1e-7, 100), timeout=st.floats(0.1, 3600))
def test_chunks_of_steady_episodes_are_worth_a_message_and_in_time(workers, seconds, timeout):
    pace = Pace(workers, timeout)
    batch = 512
    for _ in range(20):
        size = pace.chunk_size(batch)
        pace.learn(size, size * seconds)
    assert size == 1 or size * seconds <= timeout / 4 * (1 + 1e-9)
    fair = batch // (2 * workers)  # two pieces for each
    assert size >= min(fair, max(int(timeout / 4 / seconds), 1))
    assert size <= max(fair + 1, 0.005 / seconds + 1)


@given(workers=st.integers(1, 2000), batch=st.integers(1, 4096), batches=st.integers(1, 16))
def test_work_in_flight_makes_two_chunks_for_each_worker_as_far_as_it_goes(workers, batch, batches):
    pace = Pace(workers, 3600.0)
    pace.learn(batch, batch * 0.1)
    chunks = batches * -(-batch // pace.chunk_size(batch, batches))
    assert chunks >= min(0.8 * 2 * workers, batch * batches)
    assert chunks <= max(2 * 2 * workers, batches)


def test_worker_gets_the_next_chunk_early_only_where_the_first_is_soon_done():
    pace = Pace(2, 300.0)
    pace.learn(1, 0.01)
    assert pace.depth == 2
    pace.learn(1, 100.0)
    assert pace.depth == 1


def test_nobody_is_killed_when_the_whole_machine_has_stood_still():
    crew = ScriptedCrew()
    batch = cases([INNOCENT])
    crew.script.extend([[], ready(0), lambda: crew.later(5 * TIMEOUT)])
    crew.script.append(lambda: [crew.answer(*crew.sent[0])])
    dispatcher = dispatched(crew, 1)
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)
    assert crew.killed == []


def test_time_in_which_nobody_listened_does_not_count():
    crew = ScriptedCrew()
    batches = [cases([INNOCENT], random.Random(seed)) for seed in (0, 1)]
    dispatcher = dispatched(crew, 2)
    crew.script.extend([[], [], [*ready(0), *ready(1)], lambda: [crew.answer(*crew.sent[0])]])
    for batch in batches:
        dispatcher.submit(batch)
    check_same(dispatcher.collect(), batches[0])
    crew.now += 5 * TIMEOUT  # the search takes its time
    crew.script.extend([[], lambda: [crew.answer(*crew.sent[1])]])
    check_same(dispatcher.collect(), batches[1])
    assert crew.killed == []


def test_suspect_is_tried_again_by_a_worker_that_has_run_nothing():
    crew = ScriptedCrew()
    batches = [cases([INNOCENT], random.Random(seed)) for seed in (0, 1)]
    dispatcher = dispatched(crew, 2)
    crew.script.extend([[], [], [*ready(0), *ready(1)]])
    for batch in batches:
        dispatcher.submit(batch)
    crew.script.append(lambda: [crew.answer(*crew.sent[1]), Lost(0, "of old age")])
    crew.script.extend([[], ready(2), lambda: [crew.answer(*crew.sent[2])]])
    check_same(dispatcher.collect(), batches[0])
    check_same(dispatcher.collect(), batches[1])
    assert [worker for worker, _, _ in crew.sent] == [0, 1, 2], "worker 1 was free, but not new"


def test_starts_that_fail_are_no_reason_to_stop_while_others_may_get_ready():
    crew = ScriptedCrew()
    batch = cases([INNOCENT])
    dispatcher = dispatched(crew, 4)
    crew.script.append([])
    crew.script.extend([[Lost(worker, "port in use")] for worker in (0, 1, 2, 4, 5)])
    crew.script.extend([ready(3), lambda: [crew.answer(*crew.sent[-1])]])
    dispatcher.submit(batch)
    check_same(dispatcher.collect(), batch)
    assert crew.started == list(range(9)), "once one is ready, the places of the others are tried again"
