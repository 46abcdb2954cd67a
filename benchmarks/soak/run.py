"""Runs a campaign on the flaky simulator for a long time, kills it half-way, and checks its accounts.

    python -m benchmarks soak --minutes 30 -j 2
    python -m benchmarks soak --minutes 30 -j 2 --executor ray

The coordinator is killed half-way, interrupted at the end of the time, and a third one finishes what was in
flight, so that every case that was ever begun must be in the accounts.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import click

from benchmarks.soak.accounts import Entry, Journal, compare
from benchmarks.soak.flaky_simulator import JOURNAL
from benchmarks.soak.watch import Sample, Trend, marked, sample, trends
from policyfuzz import CampaignReader
from policyfuzz.core.errors import CampaignError

TARGET = f"{Path(__file__).with_name('flaky_simulator.py')}:target"
#: Seconds for everything to be gone after the coordinator was killed, or has ended.
_LAST_CLEAN_UP = 30.0
#: Seconds for a coordinator to end.
_LATEST = 600.0
#: Batches of the last coordinator: more than are in flight, so that all that was begun is finished as asked.
_LAST_BATCHES = 8
_SAMPLES = 400


@click.command("soak")
@click.option("--minutes", type=float, default=30.0, show_default=True, help="That the campaign may take.")
@click.option("-j", "--workers", type=int, default=2, show_default=True, help="Worker processes.")
@click.option("--executor", default="processes", show_default=True, help="processes or ray[:ADDRESS].")
@click.option("--timeout", default="3s", show_default=True, help="For an episode; those that hang cost it.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the campaign.")
@click.option("--raw", type=click.Path(path_type=Path), help="JSON file for all that was measured.")
@click.option("--keep", type=click.Path(path_type=Path), help="New folder for campaign and journal.")
def command(
    minutes: float, workers: int, executor: str, timeout: str, seed: int, raw: Path | None, keep: Path | None
) -> int:
    """Run a campaign on a flaky simulator, kill it half-way, and check its accounts.

    Exit code 1 if anything is lost, invented, blamed on the wrong case, left behind or growing.
    """
    half = 60 * minutes / 2
    with tempfile.TemporaryDirectory(prefix="soak-") as thrown_away:
        folder = keep or Path(thrown_away)
        options = ["-j", str(workers), "--executor", executor, "--timeout", timeout, "--seed", str(seed)]
        run = _Run(options, folder, interval=2 * half / _SAMPLES)
        run.coordinator(half, signal.SIGKILL)
        run.coordinator(half, signal.SIGINT)
        said = run.last_coordinator()
        entries = compare(run.campaign, Journal.read(run.journal))
    entries += _printed(said, entries)
    found = trends(run.samples)
    _print(entries, found, run.left_behind)
    if raw is not None:
        measured: dict[str, list[Any]] = {"entries": entries, "trends": found, "samples": run.samples}
        plain = {name: [asdict(one) for one in some] for name, some in measured.items()}
        raw.write_text(
            json.dumps({"minutes": minutes, "options": options, "totals": said, **plain}, indent=1)
        )
    is_right = all(one.is_right for one in entries) and all(one.is_flat for one in found)
    return 0 if is_right and not run.left_behind else 1


class _Run:
    """Coordinators of one campaign, one after another."""

    def __init__(self, options: list[str], folder: Path, interval: float) -> None:
        self.campaign, self.journal = folder / "campaign", folder / "journal"
        self.journal.mkdir(parents=True)
        self._options, self._interval, self._started = options, interval, time.monotonic()
        self._lives = 0
        self.samples: list[Sample] = []
        self.left_behind: list[str] = []  #: command lines of processes that should be gone

    def coordinator(self, seconds: float, end: signal.Signals) -> None:
        """Run a coordinator on the campaign for `seconds`, then send it the signal `end`."""
        process = self._start()
        try:
            self._watch(process, seconds)
            process.send_signal(end)
            self._check(process.wait(_LATEST), {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130}[end])
        finally:
            process.kill()
            process.wait()
        self._wait_until_gone()

    def last_coordinator(self) -> dict[str, Any]:
        """Run a coordinator that finishes all open work and a little more; returns what it prints."""
        reader = CampaignReader(self.campaign)
        enough = reader.progress().executions + _LAST_BATCHES * reader.config.batch_size
        reader.close()
        with tempfile.TemporaryFile("w+") as output:
            process = self._start("--max-execs", str(enough), output=output)
            try:
                self._watch(process, _LATEST)
                self._check(process.wait(0), 0, 1)
            finally:
                process.kill()
                process.wait()
            self._wait_until_gone()
            output.seek(0)
            said: dict[str, Any] = json.load(output)
            return said

    def _start(self, *limits: str, output: IO[str] | None = None) -> "subprocess.Popen[bytes]":
        self._lives += 1
        fixed = [
            "-o",
            str(self.campaign),
            "--ui",
            "none",
            "--json",
            *(["--resume"] if self._lives > 1 else []),
        ]
        arguments = [sys.executable, "-m", "policyfuzz", "fuzz", TARGET, *self._options, *fixed, *limits]
        environment = os.environ | {JOURNAL: str(self.journal), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            arguments, env=environment, stdout=output or subprocess.DEVNULL, preexec_fn=_listen
        )

    def _batches(self) -> int:
        with suppress(CampaignError):  # there is none yet
            reader = CampaignReader(self.campaign)
            try:
                return reader.progress().batch
            finally:
                reader.close()
        return 0

    def _check(self, code: int, *expected: int) -> None:
        if code not in expected:
            raise click.ClickException(f"coordinator {self._lives} ended with exit code {code}")

    def _watch(self, process: "subprocess.Popen[bytes]", seconds: float) -> None:
        """Take samples until the time is over and the coordinator has done something."""
        end, before = time.monotonic() + seconds, self._batches()
        while process.poll() is None and (time.monotonic() < end or self._batches() == before):
            time.sleep(self._interval)
            now = sample(process.pid, self._lives, self._started)
            self.samples += [] if now is None else [now]

    def _wait_until_gone(self) -> None:
        """Wait until nothing is left of a coordinator that has ended."""
        deadline = time.monotonic() + _LAST_CLEAN_UP
        while (left := marked(f"{JOURNAL}={self.journal}")) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.left_behind += left.values()
        for number in left:
            os.kill(number, signal.SIGKILL)


def _listen() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell puts in the background


def _printed(said: dict[str, Any], entries: list[Entry]) -> list[Entry]:
    """What the last coordinator printed, beside the campaign file."""
    stored = {entry.what: entry.stored for entry in entries}
    names = {
        "executions": "episodes asked for",
        "completed": "episodes completed",
        "errors": "errors",
        "hangs": "hangs",
        "simulator_crashes": "crashes",
    }
    return [Entry(f"printed: {name}", said[name], stored[what], "stored") for name, what in names.items()]


def _print(entries: list[Entry], found: list[Trend], left_behind: list[str]) -> None:
    for entry in entries:
        compared = "" if entry.other is None else f"{entry.other:>10,.0f}  {entry.source}"
        click.echo(f"{_mark(entry.is_right)} {entry.what:<40} {entry.stored:>10,.0f} {compared}")
    click.echo("")
    for trend in found:
        change = f"{trend.early:>9,.1f} -> {trend.late:,.1f}"
        click.echo(f"{_mark(trend.is_flat)} {trend.what:<14} of coordinator {trend.life} {change}")
    click.echo(f"{_mark(not left_behind)} processes left behind: {len(left_behind)}")
    for line in left_behind:
        click.echo(f"      {line}")


def _mark(is_right: bool) -> str:
    return "      " if is_right else "WRONG "
