"""Mutates files, texts and command lines for a long time, and counts what our readers do with them.

    python -m benchmarks readers --max-time 1h
    python -m benchmarks readers --only campaign --cases 2000
    python -m benchmarks readers --only model --first 4711 --cases 1      one case again

A case is a function of the name of its reader and its number. Cases run in child processes: one that hangs or
crashes costs its child only.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import click

from benchmarks.readers.cases import QUICK, READERS
from benchmarks.readers.corpus import copy, make_corpus
from benchmarks.readers.sandbox import run
from policyfuzz.cli.options import DURATION
from policyfuzz.core.errors import unknown_name

#: Seconds for one case; the slowest take some three seconds on a quiet machine.
_CASE_SECONDS = 30.0
#: Beside it, for the first case: to make the corpus, and to compile.
_START_SECONDS = 300.0
#: Of address space, for a child: a reader that needs more is a failure.
_CHILD_BYTES = 8 << 30
_FAILURES_SHOWN = 3
_KEPT = 20


@dataclass
class Tally:
    """What one reader did so far."""

    codes: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[int]] = field(default_factory=dict)  #: class of failure to numbers of cases

    def add(self, number: int, answer: dict[str, Any]) -> None:
        """Count the `answer` of case `number`."""
        self.codes.update(map(str, answer["codes"]))
        for problem in answer["problems"]:
            self.failures.setdefault(_class_of(problem), []).append(number)


@click.command("readers")
@click.option("--max-time", type=DURATION, help="Stop after this time.  [default: 1m, unless --cases]")
@click.option("--cases", type=int, help="Of each reader.")
@click.option("--first", type=int, default=0, show_default=True, help="Number of the first case.")
@click.option("--only", "only", multiple=True, help="Readers to fuzz; may be repeated.  [default: all]")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    default=Path("readers-failures"),
    show_default=True,
    help="Folder for cases that fail.",
)
@click.option("--worker", is_flag=True, hidden=True)
def command(
    max_time: float | None, cases: int | None, first: int, only: tuple[str, ...], keep: Path, worker: bool
) -> int:
    """Mutate files, texts and command lines, and check what our readers do with them.

    Exit code 1 if a case gives a traceback, an internal error, a wrong exit code, a hang, a file where
    there should be none, or runs code.
    """
    if worker:
        return _work(Path(only[0]))
    chosen = only or tuple(READERS)
    for name in chosen:
        if name not in READERS:
            raise unknown_name("reader", name, READERS)
    seconds = max_time or (float("inf") if cases else 60.0)
    with tempfile.TemporaryDirectory(prefix="readers-") as folder:
        tallies = run_all(chosen, first, cases, time.monotonic() + seconds, Path(folder), keep)
    return _report(tallies, keep)


def run_all(
    chosen: tuple[str, ...], first: int, cases: int | None, deadline: float, folder: Path, keep: Path
) -> dict[str, Tally]:
    """Run cases of all readers in turn until the time or the number is over."""
    tallies = {name: Tally() for name in chosen}
    child = _Child(folder)
    try:
        for number in count(first):
            if number - first == cases:
                break
            for name, tally in tallies.items():
                if time.monotonic() > deadline:
                    return tallies
                answer = child.asked(name, number)
                tally.add(number, answer)
                if answer["problems"]:
                    _save(keep, name, number, answer, child.case_folder, tally)
    finally:
        child.end()
    return tallies


class _Child:
    """A process that runs one case after another; a new one takes over if it hangs or crashes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "tmp").mkdir(parents=True)
        self.case_folder = folder / "case"
        self._process: subprocess.Popen[str] | None = None
        self._is_warm = False  #: the corpus is there, and kernels are compiled

    def asked(self, name: str, number: int) -> dict[str, Any]:
        """What case `number` of reader `name` did."""
        process = self._process = self._process or self._start()
        answer: dict[str, Any]
        with suppress(BrokenPipeError, ValueError, OSError):
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{name} {number}\n")
            process.stdin.flush()
            seconds = _CASE_SECONDS if self._is_warm else _CASE_SECONDS + _START_SECONDS
            if not select.select([process.stdout], [], [], seconds)[0]:
                self.end()
                return {"codes": ["hang"], "problems": [f"hangs for more than {_CASE_SECONDS:g} s"]}
            answer = json.loads(process.stdout.readline())
            self._is_warm = True
            return answer
        code = process.wait()
        self.end()
        return {"codes": ["died"], "problems": [f"takes its process with it: {code}"]}

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.communicate()
            self._process = None

    def _start(self) -> "subprocess.Popen[str]":
        scratch = str(self._folder / "tmp")
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks", "readers", "--worker", "--only", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env=os.environ | {"TMPDIR": scratch, "MPLCONFIGDIR": scratch, "OMP_NUM_THREADS": "1"},
        )


def _work(folder: Path) -> int:
    """Run the cases that stdin names, in `folder`; answer each by a line of JSON."""
    import resource

    requests, answers = sys.stdin, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (_CHILD_BYTES, _CHILD_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    corpus = folder / "corpus"
    if not corpus.exists():
        for target in ("acasxu", "bipedal", "coopnavi"):  # to compile their kernels may take a minute, once
            run(["check", target, *QUICK], folder)
        make_corpus(folder / "unfinished").rename(corpus)
    for line in requests:
        name, number = line.split()
        answer = run_case(name, Random(f"{name} {number}"), corpus, folder / "case")
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


def run_case(name: str, rng: Random, corpus: Path, folder: Path) -> dict[str, Any]:
    """Make a case of reader `name` in `folder`, which is emptied first, and run it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    copy(corpus, "planted.py", folder)
    case = READERS[name](rng, corpus, folder)
    # for a reader of a case that never came back
    folder.with_name("commands.json").write_text(json.dumps(asdict(case)))
    outcomes = [run(command, folder, case.environment) for command in case.commands]
    return {
        "codes": [outcome.code for outcome in outcomes],
        "problems": [problem for outcome in outcomes for problem in outcome.problems],
        "said": [outcome.said[-2000:] for outcome in outcomes],
        **asdict(case),
    }


def _save(keep: Path, name: str, number: int, answer: dict[str, Any], folder: Path, tally: Tally) -> None:
    """Keep the files of a case that failed, and how to run it again; a few of each class."""
    if all(len(tally.failures[_class_of(problem)]) > _KEPT for problem in answer["problems"]):
        return
    place = keep / f"{name}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    again = f"python -m benchmarks readers --only {name} --first {number} --cases 1"
    with suppress(OSError, ValueError):
        answer = json.loads(folder.with_name("commands.json").read_text()) | answer
    (place / "case.json").write_text(json.dumps({"again": again, **answer}, indent=1))
    with suppress(OSError, shutil.Error):  # pipes and devices cannot be copied
        shutil.copytree(
            folder, place / "files", symlinks=True, ignore_dangling_symlinks=True, copy_function=_copied
        )


def _copied(source: str, place: str) -> None:
    if Path(source).is_file():
        shutil.copy(source, place)


def _class_of(problem: str) -> str:
    """`problem` without what differs from case to case."""
    words = problem.split(":")
    return ":".join(words[:5])[:160] if problem.startswith("exit code") else words[0][:90]


def _report(tallies: dict[str, Tally], keep: Path) -> int:
    failures = 0
    for name, tally in tallies.items():
        codes = ", ".join(f"exit {code}: {times:,}" for code, times in sorted(tally.codes.items()))
        bad = sum(map(len, tally.failures.values()))
        failures += bad
        click.echo(
            f"{name:<12} {sum(tally.codes.values()):>7,} commands   {codes or '-'}   failures: {bad:,}"
        )
        for problem, numbers in sorted(tally.failures.items(), key=lambda item: -len(item[1])):
            some = ", ".join(map(str, numbers[:_FAILURES_SHOWN]))
            click.echo(f"    {len(numbers):>6,} x {problem}   (cases {some})")
    total = sum(sum(tally.codes.values()) for tally in tallies.values())
    click.echo(
        f"{total:,} commands, {failures:,} failures"
        + (f"; cases that failed are in {keep}" if failures else "")
    )
    return int(failures > 0)
