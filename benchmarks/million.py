"""Time and memory of looking at a campaign with a million findings, reporting on it, and resuming it."""

import dataclasses
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.campaigns import LARGE_TARGET, write_large
from benchmarks.measurement import Measurement, Track, progress, ratio_table
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import UsageError
from policyfuzz.store.reader import CampaignReader

#: Findings of the campaign that all others are compared with.
_FEW = 1_000
#: A campaign that really runs has one finding for so many of the large campaign.
_SHARE_OF_RUN = 20
#: Goals of the verbs that only look.
_MOST_SECONDS, _MOST_MEGABYTES = 1.0, 150.0
#: Goal of everything that goes through all findings, against the campaign with few.
_MOST_GROWTH = 1.5
_REPEATS = 3

#: Runs a command and prints its processor seconds, kilobytes and exit code; with True, those to its first
#: line. A small process of its own: a child is born with its parent's memory on its account.
_MEASURE = """
import os, subprocess, sys
is_first_line, *command = sys.argv[1:]
out = subprocess.PIPE if is_first_line == "True" else subprocess.DEVNULL
process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
code = None
if is_first_line == "True" and process.stdout.readline():
    process.kill()
    code = 0
_, status, used = os.wait4(process.pid, 0)
code = os.waitstatus_to_exitcode(status) if code is None else code
print(used.ru_utime + used.ru_stime, used.ru_maxrss, code)
"""

_LOOKING = {
    "status": ["status"],
    "show": ["show"],
    "show --json": ["show", "--json"],
    "show --all": ["show", "--all"],
    "show 500": ["show", "500"],
    "show --errors": ["show", "--errors"],
}
#: Rows are written as they are read, so the first one is there long before the last.
_FIRST_LINE = {"export, first line": ["export", "--format", "csv", "-o", "/dev/stdout"]}
#: Reads a sample of the findings, and draws.
_DRAWING = {"report --no-films": ["report", "--no-films", "-o", "report.html"]}
_GOING_THROUGH = {
    "export .csv": ["export", "-o", "table.csv"],
    "export .json": ["export", "-o", "table.json"],
    "export .npz": ["export", "-o", "table.npz"],
}


@dataclass(frozen=True, slots=True)
class _Cost:
    """Of one process."""

    seconds: float  #: of processor time, which a busy machine changes little
    megabytes: float  #: at its peak


@click.command("million")
@click.option("--findings", type=click.IntRange(min=2 * _FEW), default=1_000_000, show_default=True)
@as_json
def command(findings: int, is_json: bool) -> int:
    """Measure status, show, export, report and --resume on a campaign with a million findings (minutes)."""
    with tempfile.TemporaryDirectory() as folder, progress() as track:
        few, many = Path(folder, "few"), Path(folder, "many")
        for campaign, size in track([(few, _FEW), (many, findings)], "writing campaigns"):
            write_large(campaign, size)
        lines = _lines_of_verbs(few, many, findings, track)
        lines += _lines_of_resume(Path(folder), few, many, findings)
    if is_json:
        print_json([dataclasses.asdict(line) for line in lines])
    else:
        results().print(ratio_table(lines))
    return int(any(line.is_met is False for line in lines))


def _lines_of_verbs(few: Path, many: Path, findings: int, track: Track) -> list[Measurement]:
    lines = []
    verbs = _LOOKING | _FIRST_LINE | _DRAWING | _GOING_THROUGH
    for name, (verb, *options) in track(verbs.items(), "reading campaigns"):
        repeats = _REPEATS if name in _LOOKING | _FIRST_LINE else 1
        is_first_line = name in _FIRST_LINE
        before, after = (
            _cost_of([verb, str(one), *options], many.parent, repeats, is_first_line) for one in (few, many)
        )
        against = f"{_FEW:,} findings"
        ratio = after.megabytes / before.megabytes
        memory = (f"<= {_MOST_MEGABYTES:.0f} MB", after.megabytes <= _MOST_MEGABYTES)
        seconds: tuple[str, bool | None] = (f"<= {_MOST_SECONDS:g} s", after.seconds <= _MOST_SECONDS)
        if name in _DRAWING | _GOING_THROUGH:
            memory, seconds = (f"<= {_MOST_GROWTH} x", ratio <= _MOST_GROWTH), ("", None)
        time_ratio = after.seconds / before.seconds
        lines += [
            Measurement(f"{name}, {findings:,} findings", after.seconds, "s", against, time_ratio, *seconds),
            Measurement("  memory", after.megabytes, "MB", against, ratio, *memory),
        ]
    return lines


def _lines_of_resume(folder: Path, few: Path, many: Path, findings: int) -> list[Measurement]:
    """Resume the written campaigns, and one that really ran."""
    before, after = (
        _cost_of(
            _fuzz(one, "--max-execs", CampaignReader(one).progress().executions + 1000, "--resume"), folder
        )
        for one in (few, many)
    )
    size = max(findings // _SHARE_OF_RUN, _FEW)
    ran = _cost_of(_fuzz(folder / "ran", "--max-findings", size), folder)
    resumed = _cost_of(_fuzz(folder / "ran", "--max-findings", size + 100, "--resume"), folder)
    ratio, growth = resumed.megabytes / ran.megabytes, after.megabytes / before.megabytes
    return [
        Measurement(
            f"resume, {findings:,} findings: memory", after.megabytes, "MB", f"{_FEW:,} findings", growth
        ),
        Measurement(
            f"resume, {size:,} findings: memory",
            resumed.megabytes,
            "MB",
            "the run itself",
            ratio,
            f"<= {_MOST_GROWTH} x",
            ratio <= _MOST_GROWTH,
        ),
    ]


def _fuzz(folder: Path, *options: object) -> list[str]:
    return ["fuzz", LARGE_TARGET, "-o", str(folder), "--force", "--ui", "none", *map(str, options)]


def _cost_of(arguments: list[str], folder: Path, repeats: int = 1, is_first_line: bool = False) -> _Cost:
    """The least that a command line took, or took to its first line, in a process of its own."""
    costs = [_cost_once(arguments, folder, is_first_line) for _ in range(repeats)]
    return _Cost(min(one.seconds for one in costs), min(one.megabytes for one in costs))


def _cost_once(arguments: list[str], folder: Path, is_first_line: bool) -> _Cost:
    command = [
        sys.executable,
        "-c",
        _MEASURE,
        str(is_first_line),
        sys.executable,
        "-m",
        "policyfuzz",
        *arguments,
    ]
    printed = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds, kilobytes, code = printed.split()
    if int(code) not in (0, 1):
        raise UsageError(f"policyfuzz {' '.join(arguments)} ended with exit code {code}")
    return _Cost(float(seconds), float(kilobytes) / 1024)
