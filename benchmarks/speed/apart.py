"""How much faster than one are two processes that never talk? No pool can be better than that."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from policyfuzz.core.target import Runner
from policyfuzz.targets.registry import load_target

#: Episodes at once, and seconds for all to get ready.
_ROWS, _START = 32, 6.0


def speed_up(target: str, seconds: float = 10.0) -> float:
    """Episodes per second of two processes together against one alone, each for so many `seconds`."""
    return sum(_rates(target, 2, seconds)) / sum(_rates(target, 1, seconds))


def _rates(target: str, count: int, seconds: float) -> list[float]:
    command = [sys.executable, "-m", __name__, target, str(time.time() + _START), str(seconds)]
    # the folder that holds the package `benchmarks` need not be the current one
    path = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path)}
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(count)
    ]
    return [float(process.communicate()[0]) for process in processes]


def main() -> None:
    """Run episodes of the target, from the time, and for the seconds that are the arguments."""
    target, start, seconds = load_target(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    rng = np.random.default_rng(0)
    inputs = target.inputs.sample(rng, _ROWS)
    seeds = rng.integers(0, 2**63, _ROWS, dtype=np.uint64)
    with threadpool_limits(1):
        run = Runner(target)
        run(inputs[:1], seeds[:1])  # compiles
        time.sleep(max(0.0, start - time.time()))
        started, episodes = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            run(inputs, seeds)
            episodes += _ROWS
        sys.stdout.write(f"{episodes / (time.perf_counter() - started)}\n")


if __name__ == "__main__":
    main()
