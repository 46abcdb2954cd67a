"""Cost of an episode as the corpus grows to a million seeds, and memory of a million episodes."""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Measurement, Track
from policyfuzz.core.settings import DEFAULT_STRATEGY, CampaignConfig
from policyfuzz.core.target import Runner, Target
from policyfuzz.search.behaviour import BEHAVIOUR_CELLS, DESCRIPTOR_SIZE
from policyfuzz.search.corpus import COLUMNS
from policyfuzz.search.strategies import make_fuzzer
from policyfuzz.store.records import BatchRecord, Progress
from policyfuzz.store.writer import CampaignWriter
from policyfuzz.targets.registry import load_target

SIZES = (1_000, 10_000, 100_000, 1_000_000)
_BATCHES = 20
_EPISODES = 1_000_000
_MOST_BYTES = 1e9
#: Cost at the largest corpus against the smallest that still counts as flat on a noisy machine.
_FLAT = 1.5


def run(track: Track) -> list[Measurement]:
    """Measure the memory of a long campaign, and the cost of an episode at several corpus sizes."""
    # first, while this process is small: a child is born with its parent's memory on its account
    for _ in track(range(1), f"campaign of {_EPISODES:,} episodes"):
        peak = _peak_memory()
    target = load_target("acasxu")
    lines: list[Measurement] = []
    for strategy in (DEFAULT_STRATEGY, "mdpfuzz"):
        _cost_per_episode(target, strategy, SIZES[0])  # compiles
        lines += _costs(target, strategy, track)
    lines.append(
        Measurement(
            f"peak memory of {_EPISODES:,} episodes",
            peak / 1e6,
            "MB",
            goal="< 1,000 MB",
            is_met=peak < _MOST_BYTES,
        )
    )
    return lines


def _costs(target: Target, strategy: str, track: Track) -> list[Measurement]:
    """What an episode costs with more and more seeds."""
    lines: list[Measurement] = []
    first = 0.0
    for size in track(SIZES, f"corpus sizes, {strategy}"):
        cost, own_cost = _cost_per_episode(target, strategy, size)
        first = first or cost
        ratio = cost / first
        lines.append(
            Measurement(
                f"{strategy}: episode with {size:,} seeds",
                cost * 1e6,
                "µs",
                f"with {SIZES[0]:,} seeds",
                ratio,
                f"<= {_FLAT} x",
                ratio <= _FLAT,
            )
        )
        lines.append(Measurement("  of which all but the episode itself", own_cost * 1e6, "µs"))
    return lines


def _cost_per_episode(target: Target, strategy: str, size: int) -> tuple[float, float]:
    """Seconds per episode in all, and without running it, when the corpus holds `size` seeds."""
    fuzzer, runner = make_fuzzer(strategy, target), Runner(target)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        store = CampaignWriter.create(Path(folder), CampaignConfig(target.name), target.inputs)
        for _ in range(2):  # samples, then their probes
            cases = fuzzer.ask(target.batch_size)
            fuzzer.tell(cases, runner(cases.inputs, cases.seeds))
        missing = size - len(fuzzer.corpus)
        _, inputs = fuzzer.validator.fill(missing, lambda n: (np.full(n, -1), target.inputs.sample(rng, n)))
        columns = _random_columns(rng, missing)
        fuzzer.corpus.append(inputs, columns)
        novel = np.empty((0, inputs.shape[1])), np.empty((0, DESCRIPTOR_SIZE))
        fuzzer.restore(fuzzer.state(), fuzzer.corpus, *novel)  # whatever is derived from the corpus
        store.commit(BatchRecord(Progress(batch=1), seed_inputs=inputs, seed_columns=columns))
        total = running = 0.0
        episodes = 0
        for batch in range(2, _BATCHES + 2):
            started = time.perf_counter()
            cases = fuzzer.ask(target.batch_size)
            episodes += len(cases)
            run_from = time.perf_counter()
            executions = runner(cases.inputs, cases.seeds)
            running += time.perf_counter() - run_from
            update = fuzzer.tell(cases, executions)
            kept = {name: fuzzer.corpus.column(name)[update.entries] for name in COLUMNS}
            record = BatchRecord(
                Progress(batch=batch),
                seed_inputs=cases.inputs[update.kept],
                seed_columns=kept,
                first_seed=int(update.entries[0]) if len(update.entries) else 0,
                state=fuzzer.state(),
            )
            store.commit(record)
            total += time.perf_counter() - started
        store.close()
    return total / episodes, (total - running) / episodes


def _random_columns(rng: np.random.Generator, count: int) -> dict[str, NDArray[Any]]:
    """Columns of `count` corpus entries, of which one in a hundred is a finding."""
    return {
        "parent": np.full(count, -1),
        "case_seed": rng.integers(0, 2**63, count, dtype=np.uint64),
        "return": rng.random(count),
        "energy": rng.random(count),
        "log_density": rng.random(count),
        "distance": rng.random(count),
        "tie_break": rng.random(count),
        "is_crash": rng.random(count) < 0.01,
        "niche": rng.integers(0, BEHAVIOUR_CELLS, count),
    }


def _peak_memory() -> float:
    """Peak memory in bytes of a campaign of a million episodes, run in another process."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            "fuzz",
            "acasxu",
            "--max-execs",
            str(_EPISODES),
            "--ui",
            "none",
            "-o",
            f"{folder}/c",
        ]
        subprocess.run(
            [sys.executable, "-m", "policyfuzz", *arguments], check=False, stdout=subprocess.DEVNULL
        )
    kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return kilobytes * 1024.0
