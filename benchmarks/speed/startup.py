"""How long until something happens? Against an empty Python."""

import subprocess
import sys

from benchmarks.measurement import Measurement, Track, best_seconds

_REPEATS = 5


def run(track: Track) -> list[Measurement]:
    """Measure the import and the help text, each in a new process."""
    cases = {
        "python -c pass": ["-c", "pass"],
        "import policyfuzz": ["-c", "import policyfuzz"],
        "policyfuzz --help": ["-m", "policyfuzz", "--help"],
    }
    goals = {"import policyfuzz": 0.5, "policyfuzz --help": 1.0}
    lines: list[Measurement] = []
    empty = 0.0
    for name, arguments in track(cases.items(), "starting Python"):
        command = [sys.executable, *arguments]
        seconds = best_seconds(
            lambda command=command: subprocess.run(command, check=True, capture_output=True),  # type: ignore[misc]
            _REPEATS,
        )
        empty = empty or seconds
        goal = goals.get(name)
        lines.append(
            Measurement(
                name,
                seconds * 1e3,
                "ms",
                "" if goal is None else "python -c pass",
                None if goal is None else seconds / empty,
                "" if goal is None else f"< {goal:g} s",
                None if goal is None else seconds < goal,
            )
        )
    return lines
