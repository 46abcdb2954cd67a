"""What the page costs: its server, the campaign that it watches, and how old its numbers are."""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import click

from benchmarks.campaigns import LARGE_TARGET, write_large
from benchmarks.measurement import Measurement, Track, progress, ratio_table
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Progress

#: Goals: seconds of the server's processor for a page, age of live numbers, and loss of a watched campaign.
_PAGE_SECONDS, _AGE_SECONDS, _LEAST_SPEED = 0.3, 2.0, 0.98
#: Requests of each page, and seconds that an answer may take on a busy machine.
_REPEATS, _PATIENCE = 5, 300
#: Seconds of a period, and episodes before the first.
_PERIOD_SECONDS, _WARM = 4.0, 2000
_PAGES = {
    "overview": "/c/large/",
    "findings, first page": "/c/large/findings",
    "findings, worst of all first": "/c/large/findings?show=all&sort=severity",
    "findings, last page of all": "/c/large/findings?show=all&page=1000000",
    "one finding": "/c/large/findings/2500",
    "numbers of the map": "/c/large/figures/maps",
}


@click.command("web")
@click.option("--findings", type=click.IntRange(min=5000), default=100_000, show_default=True)
@click.option(
    "--periods",
    type=click.IntRange(min=4),
    default=40,
    show_default=True,
    help="Of four seconds each, of a campaign that is watched in every other one.",
)
@as_json
def command(findings: int, periods: int, is_json: bool) -> int:
    """Measure the page on a campaign with 100,000 findings, and what watching costs a campaign (minutes)."""
    with tempfile.TemporaryDirectory() as folder, progress() as track:
        lines = _lines_of_pages(Path(folder), findings, track)
        lines += _lines_of_watching(Path(folder) / "shared", periods, track)
    if is_json:
        print_json([dataclasses.asdict(line) for line in lines])
    else:
        results().print(ratio_table(lines))
    return int(any(line.is_met is False for line in lines))


def _lines_of_pages(folder: Path, findings: int, track: Track) -> list[Measurement]:
    write_large(folder / "large", findings)
    lines = []
    with _server(folder / "large") as server:
        first = server.cost("/c/large/findings")
        lines.append(Measurement("findings, very first request", first, "s", "loads the page's own parts"))
        for name, address in track(_PAGES.items(), "asking for pages"):
            seconds = statistics.median(server.cost(address) for _ in range(_REPEATS))
            goal = (f"<= {_PAGE_SECONDS:g} s", seconds <= _PAGE_SECONDS)
            lines.append(Measurement(f"{name}, {findings:,} findings", seconds, "s", "", None, *goal))
    return lines


def _lines_of_watching(shared: Path, periods: int, track: Track) -> list[Measurement]:
    """One campaign, watched by turns: what else the machine does changes slowly, so neighbours compare."""
    write_large(shared / "other", 0)
    ages: list[float] = []
    speeds: dict[bool, list[float]] = {False: [], True: []}
    with _server(shared) as server, _campaign(shared / "c") as process:
        for period in track(range(periods // 4 * 4), "a campaign, watched by turns"):
            # off, on, on, off: a campaign gets slower as its corpus grows
            is_watched = period % 4 in (1, 2)
            if is_watched:
                with _Watcher(server, shared / "c") as watcher:
                    speeds[True].append(_speed(process, shared / "c"))
                ages += watcher.ages
            else:
                speeds[False].append(_speed(process, shared / "c"))
    ratios = [on / off for on, off in zip(speeds[True], speeds[False], strict=True)]
    ratio = statistics.median(ratios)
    low, _, high = statistics.quantiles(ratios, n=4)
    oldest = max(ages, default=float("nan"))
    goal, least = f"<= {_AGE_SECONDS:g} s", f">= {_LEAST_SPEED:g} x"
    return [
        Measurement(
            "live numbers, oldest", oldest, "s", f"{len(ages)} looks", None, goal, oldest <= _AGE_SECONDS
        ),
        Measurement("live numbers, median before the next", statistics.median(ages or [float("nan")]), "s"),
        Measurement(
            "episodes per CPU second, watched",
            statistics.median(speeds[True]),
            "/s",
            f"not watched; quartiles {low:.3f} to {high:.3f}",
            ratio,
            least,
            ratio >= _LEAST_SPEED,
        ),
    ]


@contextmanager
def _campaign(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A campaign that runs meanwhile, in small batches: readers may meet each of its transactions."""
    options = ["-o", str(folder), "--force", "--ui", "none", "--batch", "64", "--max-time", "2h"]
    command = [sys.executable, "-m", "policyfuzz", "fuzz", LARGE_TARGET, *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            while _progress(folder).executions < _WARM and process.poll() is None:
                time.sleep(0.1)
            yield process
        finally:
            process.kill()


def _speed(process: "subprocess.Popen[bytes]", folder: Path) -> float:
    """Episodes per second of processor time of the campaign, over some seconds."""
    executions, seconds = _progress(folder).executions, _processor_seconds(process.pid)
    time.sleep(_PERIOD_SECONDS)
    took = _processor_seconds(process.pid) - seconds
    return (_progress(folder).executions - executions) / max(took, 1e-9)


def _progress(folder: Path) -> Progress:
    try:
        with closing(CampaignReader(folder)) as campaign:
            return campaign.progress()
    except CampaignError:  # it is being made
        return Progress()


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Server:
    """A page in a process of its own."""

    process: "subprocess.Popen[str]"
    address: str

    def cost(self, path: str) -> float:
        """Seconds of the server's processor that one request takes."""
        before = _processor_seconds(self.process.pid)
        with urlopen(self.address.rstrip("/") + path, timeout=_PATIENCE) as answer:
            answer.read()
        return _processor_seconds(self.process.pid) - before


@contextmanager
def _server(folder: Path) -> Iterator[_Server]:
    command = [sys.executable, "-m", "policyfuzz", "web", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if not said.startswith("open http"):
                raise UsageError(f"policyfuzz web said {said!r}")
            yield _Server(process, said.split()[1])
        finally:
            process.terminate()


class _Watcher:
    """Watches a campaign as a page does, and notes how old its numbers became before the next ones came."""

    def __init__(self, server: _Server, campaign: Path) -> None:
        self.ages: list[float] = []
        self._address = f"{server.address}events"
        self._campaign = campaign
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._has_ended = False

    def __enter__(self) -> "_Watcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended = True
        self._thread.join(_PATIENCE)

    def _watch(self) -> None:
        shown: float | None = None  #: campaign time of the numbers on the page
        with urlopen(Request(self._address), timeout=_PATIENCE) as events:
            for line in events:
                if self._has_ended:
                    return
                if not line.startswith(b"data: "):
                    continue
                numbers = json.loads(line[6:]).get("c")
                if numbers is None or not numbers.get("is_running"):
                    continue
                if shown is not None:
                    self.ages.append(_progress(self._campaign).seconds - shown)
                shown = float(numbers["point"][1])
