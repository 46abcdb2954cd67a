"""What do worker processes bring, and what do they cost? Against one worker, and against none."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.campaigns import run_campaign
from benchmarks.measurement import Measurement, Track
from benchmarks.speed.apart import speed_up
from benchmarks.speed.worker_targets import INPUTS, burning
from policyfuzz.campaign.events import BatchDone, Event
from policyfuzz.core.settings import CampaignOptions
from policyfuzz.core.target import Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.executor import INLINE, PROCESSES, RAY, Executor, ExecutorChoice, WorkerStats
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.store.records import Progress
from policyfuzz.targets.registry import load_target

_ROUNDS = 3
#: Of each campaign on `bipedal`, and how many of them are samples.
_EPISODES, _SAMPLES = 640, 128
_BATCH, _WINDOW = 64, 2
_GOAL = 1.8
#: Seconds of the shortest episode, where the longest takes ten times as long, and batches of these.
_UNIT_SECONDS, _LONG_BATCHES = 0.005, 24
_BUSY_GOAL = 0.95
#: Batches of a trivial simulator that are timed, and before that.
_SHORT_BATCHES, _WARM_UP = 400, 100
#: Milliseconds per batch.
_GOALS = {PROCESSES: 1.0, RAY: 10.0}


def run(track: Track) -> list[Measurement]:
    """Measure campaigns in turn, how busy workers are, what a batch costs, and how often a model loads."""
    with threadpool_limits(1):
        return [*_speed(track), *_utilisation(track), *_overhead(track), _loads()]


def _speed(track: Track) -> list[Measurement]:
    """Campaigns on `bipedal` with two workers, one, and none, each in its turn."""
    target = load_target("bipedal")
    two, one, none = (ExecutorChoice(PROCESSES, 2), ExecutorChoice(PROCESSES, 1), ExecutorChoice(INLINE))
    run_campaign(target, _BATCH, CampaignOptions(samples=_SAMPLES))  # compiles
    orders = [(two, one, none), (none, one, two)]
    rounds = []
    for number in track(range(_ROUNDS), "campaigns with two workers, one and none in turn"):
        rates = {choice: _rate(target, choice) for choice in orders[number % 2]}
        rounds.append((rates[two], rates[one], rates[none]))
    # the round in the middle: the machine's mood then hits all alike
    fast, slow, inline = sorted(rounds, key=lambda rates: rates[0] / rates[1])[_ROUNDS // 2]
    ratio, most = fast / slow, speed_up("bipedal")
    return [
        Measurement("bipedal without workers", inline, "episodes/s"),
        Measurement("bipedal -j 1", slow, "episodes/s", "without workers", slow / inline),
        Measurement("bipedal -j 2", fast, "episodes/s", "-j 1", ratio, f">= {_GOAL} x", ratio >= _GOAL),
        Measurement("two processes that never talk", most, "x one, on this machine now"),
        Measurement("  of that, -j 2 has", 100 * ratio / most, "%"),
    ]


def _rate(target: Target, choice: ExecutorChoice) -> float:
    """Episodes per second of a campaign, from its first batch to its end: workers are ready by then."""
    seen: list[Progress] = []

    def listen(event: Event) -> None:
        if isinstance(event, BatchDone):
            seen.append(event.progress)

    run_campaign(target, _EPISODES, CampaignOptions(samples=_SAMPLES), choice.make_executor, (listen,))
    first, last = seen[0], seen[-1]
    return (last.executions - first.executions) / (last.seconds - first.seconds)


def _utilisation(track: Track) -> list[Measurement]:
    """How busy two workers are kept by episodes whose lengths vary ten times."""
    with _open(burning(_UNIT_SECONDS), ExecutorChoice(PROCESSES, 2)) as executor:
        _run_batches(executor, 4)
        before = executor.worker_stats
        _run_batches(
            executor, _LONG_BATCHES, lambda items: track(items, "episodes of very different lengths")
        )
        share = _busy_share(before, executor.worker_stats)
    goal = f">= {_BUSY_GOAL:.0%}"
    return [
        Measurement("busy, lengths vary 10 x", 100 * share, "%", goal=goal, is_met=share >= _BUSY_GOAL),
    ]


def _busy_share(before: WorkerStats, after: WorkerStats) -> float:
    return (after.busy_seconds - before.busy_seconds) / (after.worker_seconds - before.worker_seconds)


def _overhead(track: Track) -> Iterator[Measurement]:
    """What a batch costs more than in this process, where its episodes take no time."""
    choices = [ExecutorChoice(INLINE), ExecutorChoice(PROCESSES, 2)]
    choices += [ExecutorChoice(RAY, 2)] if find_spec("ray") else []
    inline = 0.0
    for choice in track(choices, f"{_SHORT_BATCHES} batches of {_BATCH} empty episodes"):
        with _open(burning(0.0), choice) as executor:
            _run_batches(executor, _WARM_UP)
            one_by_one, in_flight = _milliseconds(executor, 1), _milliseconds(executor, _WINDOW)
        if choice.kind == INLINE:
            inline = one_by_one
            yield Measurement("empty batch in this process", inline, "ms")
            continue
        cost, goal = one_by_one - inline, _GOALS[choice.kind]
        what = f"more through {choice.kind}, one batch at a time"
        yield Measurement(what, cost, "ms", goal=f"<= {goal:g} ms", is_met=cost <= goal)
        yield Measurement(f"  with {_WINDOW} in flight, as in campaigns", in_flight - inline, "ms")


def _milliseconds(executor: Executor, window: int) -> float:
    """For a batch, the median."""
    times: list[float] = []

    def timed(items: range) -> Iterator[int]:
        for item in items:
            started = time.perf_counter()
            yield item
            times.append(time.perf_counter() - started)

    _run_batches(executor, _SHORT_BATCHES, timed, window)
    return 1e3 * statistics.median(times)


def _loads() -> Measurement:
    """How often the policy was made while two workers ran many batches."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "loads"
        with _open(burning(0.0, file), ExecutorChoice(PROCESSES, 2)) as executor:
            _run_batches(executor, _WARM_UP)
            # only now are both sure to be there
            while executor.worker_stats.ready < 2:
                _run_batches(executor, 1)
        count = len(file.read_text().splitlines())
    what = f"loads of the model, 2 workers and {_WARM_UP} batches"
    return Measurement(what, count, "loads", goal="2", is_met=count == 2)


@contextmanager
def _open(target: Target, choice: ExecutorChoice) -> Iterator[Executor]:
    executor = choice.make_executor(target, TimeSplit())
    try:
        yield executor
    finally:
        executor.close()


def _run_batches(
    executor: Executor,
    count: int,
    track: Callable[[range], Iterator[int]] = iter,
    window: int = _WINDOW,
) -> None:
    """Run `count` batches, with `window` of them in flight."""
    rng = np.random.default_rng(0)
    for _ in range(window - 1):
        executor.submit(_cases(rng))
    for _ in track(range(count)):
        executor.submit(_cases(rng))
        executor.collect()
    for _ in range(window - 1):
        executor.collect()


def _cases(rng: np.random.Generator) -> Cases:
    inputs = INPUTS.sample(rng, _BATCH)
    seeds = rng.integers(0, 2**63, _BATCH, dtype=np.uint64)
    return Cases.of(Purpose.SAMPLE, inputs, seeds, np.full(_BATCH, NO_PARENT, np.int64))
