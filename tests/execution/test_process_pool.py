"""Worker processes that answer, crash, hang, leave and multiply; nothing of them may remain."""

import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import load_target
from policyfuzz.core.errors import TargetCodeError
from policyfuzz.core.target import Runner
from policyfuzz.execution.processes.process_pool import ProcessPool
from policyfuzz.execution.shipping import pack
from policyfuzz.execution.worker_pool import ChunkResult, Message, WorkerLost, WorkerReady

sys.path.insert(0, str(Path(__file__).parent))
import hazards
from processes_about import MARK, PATIENCE, marked, wait_until, zombies

pytestmark = pytest.mark.slow


def cases(*names):
    """Inputs (n, 3) and seeds (n,) of cases with these hazards."""
    rows = [[row / 10, hazards.NUMBERS[name], 0.1 + row] for row, name in enumerate(names)]
    return np.array(rows), np.arange(len(rows), dtype=np.uint64)


class SingleWorker:
    """A pool that always has one worker."""

    def __init__(self, target):
        self.pool = ProcessPool(pack(target))
        self.worker = -1
        self.replace()

    def replace(self):
        self.worker += 1
        self.pool.start(self.worker)
        self.is_ready = False

    def next(self, kinds=(WorkerReady, ChunkResult, WorkerLost)):
        """The next message of one of these `kinds`; all before it must be that the worker is ready."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for message in self.pool.wait(1.0):
                if isinstance(message, kinds):
                    return message
                assert isinstance(message, WorkerReady), message
        raise AssertionError("no message")

    def send(self, *names):
        if not self.is_ready:
            self.next(WorkerReady)
            self.is_ready = True
        self.pool.send(self.worker, *cases(*names))

    def answer(self, *names):
        self.send(*names)
        message = self.next()
        assert isinstance(message, ChunkResult), message
        return message

    def lost(self, *names):
        self.send(*names)
        message = self.next((ChunkResult, WorkerLost))
        self.replace()
        assert isinstance(message, WorkerLost), message
        assert not message.is_node_failure
        return message

    def killed(self, *names):
        self.send(*names)
        assert self.pool.wait(0.3) == []
        self.pool.kill(self.worker)
        message = self.next((ChunkResult, WorkerLost))
        self.replace()
        assert isinstance(message, WorkerLost), message
        return message


@pytest.fixture(scope="module")
def mark():
    """The mark of all processes that are started here."""
    with pytest.MonkeyPatch.context() as patch:
        mark = uuid.uuid4().hex
        patch.setenv(MARK, mark)
        yield mark
        wait_until(lambda: not marked(mark), "all processes are gone")
        assert not zombies()


@pytest.fixture(scope="module")
def single(mark):
    single = SingleWorker(hazards.minefield())
    yield single
    single.pool.close()


def test_answers_are_those_of_this_process_bit_for_bit(single):
    names = ["do_nothing"] * 30
    answer = single.answer(*names)
    here = Runner(hazards.minefield())(*cases(*names))
    for one, other in (
        (answer.result.returns, here.returns),
        (answer.result.lengths, here.lengths),
        (answer.result.states, here.states),
        (answer.result.verdicts.kinds, here.verdicts.kinds),
        (answer.result.verdicts.steps, here.verdicts.steps),
        (answer.result.verdicts.margins, here.verdicts.margins),
    ):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    assert answer.result.states.strides == here.states.strides, "sums over it might round differently"
    assert here.crashed.any()
    assert np.isfinite(here.verdicts.margins).any()
    assert answer.seconds > 0


@pytest.mark.parametrize("count", [3, 500])
def test_work_that_waits_is_not_touched_by_the_answer_to_what_is_before(single, count):
    first, second = ["nap", *["do_nothing"] * 60], ["do_nothing"] * count
    single.answer("do_nothing")
    single.send(*first)
    single.send(*second)
    for names in (first, second):
        here = Runner(hazards.minefield())(*cases(*names))
        there = single.next().result
        assert there.returns.tolist() == here.returns.tolist()
        assert there.states.tobytes() == here.states.tobytes()


@pytest.mark.parametrize(
    ("hazard", "said"),
    [
        ("segfault", "killed by SIGSEGV (Segmentation fault)"),
        ("out_of_memory", "killed by SIGKILL (Killed); was it out of memory?"),
        ("real_time_signal", "killed by signal 39"),
        ("leave_at_once", "the worker process ended itself with exit code 0"),
        ("die_with_heir", "the worker process ended itself with exit code 7"),
    ],
)
def test_death_is_told_with_its_cause_and_step(single, hazard, said):
    lost = single.lost("do_nothing", hazard)
    assert said in lost.text
    assert lost.step == 2


def test_last_words_of_a_segfault_have_the_line_of_the_environment(single):
    text = single.lost("segfault").text
    line = next(
        number
        for number, line in enumerate(Path(hazards.__file__).read_text().splitlines(), 1)
        if "SIGSEGV" in line
    )
    assert f'hazards.py", line {line} in segfault' in text


@pytest.mark.parametrize("hazard", ["hang_in_c", "hang_in_python", "hang_with_a_child", "talk_and_hang"])
def test_worker_that_hangs_is_killed_and_says_where_it_was(single, mark, hazard):
    lost = single.killed(hazard)
    assert lost.step == 2
    if hazard != "talk_and_hang":
        assert f"in {hazard}\n" in lost.text
        assert 'hazards.py", line' in lost.text
    assert len(lost.text) < 10_000
    wait_until(lambda: not any("sleep" in one for one in marked(mark)), "its children are gone")


def test_worker_that_does_not_want_to_die_does_so_by_force(single):
    assert single.killed("hang_deaf").step == 2


def test_worker_that_closes_its_descriptors_is_replaced(single):
    assert "killed by SIGKILL" in single.lost("close_descriptors").text


def test_flood_of_output_does_not_fill_the_memory(single):
    for _ in range(3):
        single.answer("talk_much")
    assert kept(single) <= 1_000_000


def test_flood_of_one_endless_episode_does_not_fill_the_memory(single):
    single.send("talk_and_hang")
    for _ in range(3):  # 1 s each
        single.pool.wait(1.0)
        assert kept(single) < 500_000_000
    os.kill(single.pool._workers[single.worker].group, signal.SIGSTOP)
    wait_until(lambda: not single.pool.wait(0.2) and kept(single) <= 1_000_000, "what it printed is dropped")
    single.pool.kill(single.worker)
    assert isinstance(single.next(WorkerLost), WorkerLost)
    single.replace()


def kept(single) -> int:
    """Bytes of memory that hold what the worker has printed."""
    return os.fstat(single.pool._workers[single.worker]._log).st_blocks * 512


def test_idle_worker_that_is_killed_is_told(single):
    single.answer("do_nothing")
    os.kill(single.pool._workers[single.worker].group, signal.SIGKILL)
    assert isinstance(single.next(), WorkerLost)
    single.pool.kill(single.worker)  # who is gone already
    single.replace()


def test_many_deaths_leak_neither_descriptors_nor_processes(single, mark):
    single.answer("do_nothing")
    before, alive = len(list(Path("/proc/self/fd").iterdir())), len(marked(mark))
    for _ in range(6):
        single.lost("leave_at_once")
    single.answer("do_nothing")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    wait_until(lambda: len(marked(mark)) == alive, "one worker and the reaper")
    assert not zombies()


def test_pool_goes_on_when_its_reaper_is_killed(mark):
    before = set(marked(mark))
    single = SingleWorker(hazards.minefield())
    (reaper,) = (one for one in set(marked(mark)) - before if "reaper" in one)
    os.kill(int(reaper.partition(":")[0]), signal.SIGKILL)
    single.lost("leave_at_once")
    single.answer("do_nothing")
    single.pool.close()
    wait_until(lambda: set(marked(mark)) <= before, "workers are gone")


def test_wait_returns_when_it_is_woken(mark):
    pool = ProcessPool(b"never built")
    alarm = threading.Timer(0.2, pool.wake)
    alarm.start()
    started = time.monotonic()
    assert list(pool.wait(PATIENCE)) == []
    assert time.monotonic() - started < PATIENCE, "nobody woke it"
    alarm.join()
    pool.close()


@pytest.mark.parametrize("hazard", ["have_a_child", "have_a_child_that_goes_away"])
def test_children_of_workers_end_with_the_pool(mark, hazard):
    single = SingleWorker(hazards.minefield())
    single.answer(hazard)
    wait_until(lambda: any("sleep" in one for one in marked(mark)), "it is seen")
    single.pool.close()
    wait_until(lambda: not any("sleep" in one for one in marked(mark)), "its children are gone")


def test_children_end_with_their_worker_wherever_they_went(single, mark):
    single.lost("lose_a_child_that_went_away")
    wait_until(lambda: not any("sleep" in one for one in marked(mark)), "its children are gone")


def test_simulator_that_ends_the_program_costs_its_own_episode(single):
    result = single.answer("do_nothing", "leave").result
    assert list(result.errors) == [1]
    assert "SystemExit: I have had enough" in result.errors[1].text


def test_copy_of_a_worker_does_not_answer(single):
    expected = Runner(hazards.minefield())(*cases("do_nothing")).returns
    for _ in range(5):
        told = single.answer("fork_and_both_go_on", "do_nothing").result
        assert isinstance(told, TargetCodeError)
        assert "forked this process and returned in both" in told.message
        assert single.answer("do_nothing").result.returns == expected


def test_worker_that_cannot_be_started_is_told_as_lost(mark, monkeypatch):
    pool = ProcessPool(b"never built")
    before = len(list(Path("/proc/self/fd").iterdir()))

    def refuse(*arguments, **options):
        raise BlockingIOError(11, "no more processes")

    monkeypatch.setattr("subprocess.Popen", refuse)
    pool.start(0)
    monkeypatch.undo()
    (lost,) = pool.wait(PATIENCE)
    assert lost == WorkerLost(0, "no process can be started: [Errno 11] no more processes")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    pool.close()


def test_policy_is_loaded_once_per_worker_on_one_thread(mark, monkeypatch, tmp_path):
    monkeypatch.setenv("LOADED", str(tmp_path / "loaded"))
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    single = SingleWorker(hazards.minefield(hazards.Threads, hazards.Counted))
    for _ in range(3):
        assert single.answer("do_nothing").result.returns.tolist() == [4.0], "4 steps on one thread"
    single.lost("leave_at_once")
    single.answer("do_nothing")
    single.pool.close()
    loaders = (tmp_path / "loaded").read_text().split()
    assert len(loaders) == len(set(loaders)) == 2
    assert str(os.getpid()) not in loaders


class Confused:
    def begin(self, count): ...

    def act(self, observations, rows):
        raise KeyError("no idea")


def test_error_of_the_policy_is_answered_and_the_worker_goes_on(mark):
    single = SingleWorker(hazards.minefield(policy=Confused))
    for _ in range(2):
        answer = single.answer("do_nothing")
        assert isinstance(answer.result, TargetCodeError)
        assert "KeyError: 'no idea'" in answer.result.message
        assert Path(__file__).name in answer.result.message
    single.pool.close()


@pytest.mark.parametrize(
    ("simulator", "said"),
    [
        (hazards.raise_at_start, "raised ValueError: no licence for this simulator"),
        (hazards.segfault, "killed by SIGSEGV"),
        (hazards.leave, "raised SystemExit: I have had enough"),
    ],
)
def test_failed_start_is_told_in_the_words_of_the_worker(mark, simulator, said):
    single = SingleWorker(hazards.minefield(simulator))
    lost = single.next()
    single.pool.close()
    assert isinstance(lost, WorkerLost)
    assert said in lost.text
    assert "hazards.py" in lost.text


def test_start_that_hangs_is_given_up(mark):
    target = hazards.minefield(hazards.hang_in_c)
    for seconds in (10, 40, 160):  # a busy machine may need longer to come to the place where it hangs
        pool = ProcessPool(pack(target), start_seconds=float(seconds))
        pool.start(0)
        deadline = time.monotonic() + PATIENCE
        messages: Sequence[Message] = []
        while not messages and time.monotonic() < deadline:
            messages = pool.wait(1.0)
        pool.close()
        assert isinstance(messages[0], WorkerLost)
        assert f"not ready within {seconds} s" in messages[0].text
        if "in hang_in_c\n" in messages[0].text:
            return
    pytest.fail(f"it was given up somewhere else: {messages[0].text}")


def test_closing_ends_workers_that_are_still_starting(mark):
    before = set(marked(mark))
    single = SingleWorker(load_target("ripple:dimensions=3"))
    single.pool.start(1000)  # and is not waited for
    single.pool.close()
    wait_until(lambda: set(marked(mark)) <= before, "workers are gone")
