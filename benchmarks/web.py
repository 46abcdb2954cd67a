"""What the page costs: its server, the campaign that it watches, and how old its numbers are."""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.request import Request, urlopen

import click
import numpy as np

from benchmarks.measurement import Measurement, Track, progress, ratio_table
from policyfuzz.campaign.launch import launch
from policyfuzz.cli.console import print_json, results
from policyfuzz.cli.options import as_json
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.settings import Budget
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, BatchRecord, Finding
from policyfuzz.store.writer import CampaignWriter
from policyfuzz.targets.registry import load_target

_TARGET = "ripple:dimensions=4,probability=0.3"
#: Findings that are written in one transaction, and of how many one is distinct.
_AT_ONCE, _PER_DISTINCT = 2000, 10
#: Goals: seconds of the server's processor for a page, age of live numbers, and loss of a watched campaign.
_PAGE_SECONDS, _AGE_SECONDS, _LEAST_SPEED = 0.3, 2.0, 0.98
#: Requests of each page, looks at live numbers, and seconds that an answer may take on a busy machine.
_REPEATS, _LOOKS, _PATIENCE = 5, 15, 300
_PAGES = {
    "overview": "/c/large/",
    "findings, first page": "/c/large/findings",
    "findings, worst of all first": "/c/large/findings?show=all&sort=severity",
    "findings, last page of all": "/c/large/findings?show=all&page=1000000",
    "one finding": "/c/large/findings/2500",
    "numbers of the map": "/c/large/figures/maps",
}
#: Runs a campaign and prints its episodes per second of processor time, its start left out.
_CAMPAIGN = """
import sys, time
from pathlib import Path
from policyfuzz.campaign.launch import launch
from policyfuzz.core.settings import Budget
from policyfuzz.targets.registry import load_target
target, folder, episodes = load_target(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
launch(target, Budget(executions=2000), folder=Path(sys.argv[4]), force=True)
before = time.process_time()
launch(target, Budget(executions=episodes), folder=folder, force=True)
print(episodes / (time.process_time() - before))
"""


@click.command("web")
@click.option("--findings", type=click.IntRange(min=5000), default=100_000, show_default=True)
@click.option("--pairs", type=click.IntRange(min=1), default=5, show_default=True, help="Of campaigns.")
@click.option("--episodes", type=click.IntRange(min=5000), default=40_000, show_default=True, help="Of each.")
@as_json
def command(findings: int, pairs: int, episodes: int, is_json: bool) -> int:
    """Measure the page on a campaign with 100,000 findings, and what watching costs a campaign (minutes)."""
    with tempfile.TemporaryDirectory() as folder, progress() as track:
        lines = _lines_of_pages(Path(folder), findings, track)
        lines += _lines_of_watching(Path(folder), pairs, episodes, track)
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


def _lines_of_watching(folder: Path, pairs: int, episodes: int, track: Track) -> list[Measurement]:
    """Campaigns with and without a page that watches, by turns."""
    ratios, ages = [], []
    for pair in track(range(pairs), "campaigns with and without a page"):
        speeds: dict[bool, float] = {}
        # which of the two comes first alternates, too
        for is_watched in (False, True) if pair % 2 else (True, False):
            shared = folder / f"{pair}-{is_watched}"
            shared.mkdir()
            write_large(shared / "other", 0)
            if is_watched:
                with _server(shared) as server, _Watcher(server, shared / "c") as watcher:
                    speeds[is_watched] = _speed(shared, episodes)
                ages += watcher.ages
            else:
                speeds[is_watched] = _speed(shared, episodes)
        ratios.append(speeds[True] / speeds[False])
    speed = statistics.median(ratios)
    spread = f"without a page; {min(ratios):.3f} to {max(ratios):.3f}"
    made = f"<= {_AGE_SECONDS:g} s"
    oldest = max(ages, default=float("nan"))
    typical = statistics.median(ages) if ages else float("nan")
    return [
        Measurement(
            "live numbers, oldest", oldest, "s", f"{len(ages)} looks", None, made, oldest <= _AGE_SECONDS
        ),
        Measurement("live numbers, median before the next", typical, "s"),
        Measurement(
            "episodes per CPU second, watched",
            speed,
            "x",
            spread,
            speed,
            f">= {_LEAST_SPEED:g} x",
            speed >= _LEAST_SPEED,
        ),
    ]


def _speed(shared: Path, episodes: int) -> float:
    """Episodes per second of processor time of a campaign in a process of its own."""
    arguments = [_TARGET, str(shared / "c"), str(episodes), str(shared / "warm")]
    done = subprocess.run(
        [sys.executable, "-c", _CAMPAIGN, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return float(done.stdout)


@dataclass(frozen=True, slots=True)
class _Server:
    """A page in a process of its own."""

    process: "subprocess.Popen[str]"
    address: str

    def cost(self, path: str) -> float:
        """Seconds of the server's processor that one request takes."""
        before = self._seconds()
        with urlopen(self.address.rstrip("/") + path, timeout=_PATIENCE) as answer:
            answer.read()
        return self._seconds() - before

    def _seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
                if shown is not None and len(self.ages) < _LOOKS:
                    self.ages.append(self._campaign_seconds() - shown)
                shown = float(numbers["point"][1])

    def _campaign_seconds(self) -> float:
        """Campaign time of the newest numbers in the file."""
        try:
            with closing(CampaignReader(self._campaign)) as campaign:
                return campaign.progress().seconds
        except CampaignError:
            return 0.0


def write_large(folder: Path, size: int) -> Path:
    """A campaign that ran for a moment, with further findings up to `size`, as its writer stores them."""
    target = load_target(_TARGET)
    launch(target, Budget(executions=500), folder=folder, force=True)
    store, rng = CampaignWriter(folder), np.random.default_rng(0)
    now, first = store.progress(), (store.last_number("findings") or 0) + 1
    while first <= size:
        numbers = range(first, min(first + _AT_ONCE, size + 1))
        now = replace(
            now,
            batch=now.batch + 1,
            seconds=now.seconds + 1.0,
            executions=now.executions + 2 * len(numbers),
            findings=now.findings + len(numbers),
            distinct_findings=now.distinct_findings + sum(number % _PER_DISTINCT == 0 for number in numbers),
        )
        inputs = target.inputs.sample(rng, len(numbers))
        drawn = rng.random((len(numbers), 3))
        behaviours = rng.normal(size=(len(numbers), DESCRIPTOR_SIZE))
        found = [
            Finding(
                id=number,
                status=CONFIRMED,
                is_distinct=number % _PER_DISTINCT == 0,
                is_novel=number % _PER_DISTINCT == 0,
                kind=("caught", "late", "far out")[number % 3],
                crash_step=int(100 * step),
                episode_return=-10 * earned,
                margin=-margin,
                outcome=number,
                repeats=number % 7,
                root=number % 1000,
                behaviour=json.dumps(behaviour.tolist()),
                reseeded=None,
                reseeded_crashes=None,
                survived_by=None,
                parent=None,
                case_seed=number,
                batch=now.batch,
                execution=now.executions,
                seconds=now.seconds,
                origin=None,
                input=row,
            )
            for number, row, behaviour, (step, earned, margin) in zip(
                numbers, inputs, behaviours, drawn.tolist(), strict=True
            )
        ]
        store.commit(BatchRecord(now, findings=found))
        first = numbers[-1] + 1
    store.close()
    return folder
