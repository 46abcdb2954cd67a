"""How all instances in a folder are doing, one by one and together."""

import platform
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.sync.outbox import About
from policyfuzz.campaign.sync.parcels import PROGRESS, DamagedFile, read_page, read_parcel
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.inputs import Angle, Choice, Dimension, InputSpace, Integer, Real, Seed
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.search.distinct import DistinctSet
from policyfuzz.store.database import is_being_written
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Progress
from policyfuzz.store.schema import FILE_NAME


@dataclass(frozen=True, slots=True)
class Found:
    """The distinct findings of one campaign."""

    inputs: NDArray[np.float64]  #: (n, d)
    radius: float  #: within which it calls no two of them distinct


def distinct_together(dimensions: Sequence[Sequence[Any]], found: Sequence[Found]) -> int:
    """How many of all that was `found` are distinct.

    `dimensions` are name, kind and range of each coordinate. Where campaigns have another idea of distinct,
    the largest radius counts. The campaign with the most comes first, so that it keeps all of its own.
    """
    space = InputSpace(tuple(_dimension(*one) for one in dimensions))
    packing = DistinctSet(max((one.radius for one in found), default=1.0), space.periods)
    for one in sorted(found, key=lambda one: -len(one.inputs)):
        if len(one.inputs):
            packing.add(space.to_unit(one.inputs))
    return len(packing)


def _dimension(name: str, kind: str, low: float, high: float) -> Dimension:
    """A dimension that maps to the unit interval as the stored one does."""
    if kind == Angle.kind:
        return Angle(name)
    if kind == Choice.kind:
        return Choice(name, tuple(str(number) for number in range(int(high) + 1)))
    if kind == Integer.kind:
        return Integer(name, int(low), int(high))
    if kind == Seed.kind:
        return Seed(name, int(low), int(high))
    return Real(name, low, high)


#: What an instance can be. "killed": it does not run, and was not stopped in order.
RUNNING, STOPPED, KILLED, DAMAGED, FOREIGN = "running", "stopped", "killed", "damaged", "foreign"
#: Seconds after which a running instance on another machine would have said something new.
_SILENCE = 60.0


@dataclass(frozen=True, slots=True)
class Instance:
    """One campaign of several."""

    name: str  #: of its folder
    state: str
    config: CampaignConfig
    dimensions: list[list[Any]]  #: name, kind and range of each
    progress: Progress
    stop_reason: str | None
    seconds_since_finding: float | None  #: campaign time; None where nothing was found
    distinct: NDArray[np.float64] = field(repr=False)  #: (n, d) its distinct findings
    host: str | None = None  #: the other machine that it was last started on

    @property
    def own_findings(self) -> int:
        """Confirmed findings that were not taken from another instance."""
        return self.progress.findings - self.progress.imported_findings


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A folder beside the instances that is none, or that cannot be read."""

    name: str
    state: str
    problem: str


@dataclass(frozen=True, slots=True)
class Together:
    """Sums over instances."""

    instances: int
    running: int
    workers: int  #: of those that run
    executions: int
    executions_per_second: float  #: of those that run
    findings: int  #: each where it was found first
    imported_findings: int  #: taken by others
    distinct_findings: int  #: of all, none counted twice
    failures: int
    seconds_since_finding: float | None  #: of the instance that found something last
    failure_probability: FailureProbability | None  #: None where they do not all fuzz the same


def holds_instances(folder: Path) -> bool:
    """True where `folder` holds no campaign, but folders with campaigns."""
    return not (folder / FILE_NAME).exists() and any(folder.glob(f"*/{FILE_NAME}"))


def instances_in(folder: Path) -> Iterator[Instance | Unreadable]:
    """All folders in `folder`, by name."""
    for path in sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."):
        try:
            if (path / FILE_NAME).exists():
                yield _from_elsewhere(path) or _from_store(path)
            else:
                yield Unreadable(path.name, FOREIGN, "no campaign in it")
        except (CampaignError, DamagedFile) as error:
            yield Unreadable(path.name, DAMAGED, str(error).splitlines()[0])
        except OSError as error:
            yield Unreadable(path.name, DAMAGED, error.strerror or str(error))


def together(instances: list[Instance]) -> Together:
    """All `instances` as one."""
    running = [one for one in instances if one.state == RUNNING]
    since = [one.seconds_since_finding for one in instances if one.seconds_since_finding is not None]
    return Together(
        instances=len(instances),
        running=len(running),
        workers=sum(one.progress.workers for one in running),
        executions=sum(one.progress.executions for one in instances),
        executions_per_second=sum(one.progress.executions_per_second for one in running),
        findings=sum(one.own_findings for one in instances),
        imported_findings=sum(one.progress.imported_findings for one in instances),
        distinct_findings=_distinct(instances),
        failures=sum(one.progress.failures for one in instances),
        seconds_since_finding=min(since, default=None),
        failure_probability=_failure_probability(instances),
    )


def _alike(instances: list[Instance]) -> list[list[Instance]]:
    """Those that fuzz the same policy on the same target, and then the others."""
    alike: dict[tuple[str, ...], list[Instance]] = defaultdict(list)
    for one in instances:
        config = one.config
        key = (config.target, config.policy_sha256, config.code_sha256, repr(one.dimensions))
        alike[key].append(one)
    return list(alike.values())


def _distinct(instances: list[Instance]) -> int:
    """Distinct findings of all; those on different targets have nothing in common."""
    return sum(
        distinct_together(
            some[0].dimensions, [Found(one.distinct, one.config.distinct_radius) for one in some]
        )
        for some in _alike(instances)
    )


def _failure_probability(instances: list[Instance]) -> FailureProbability | None:
    """From the draws of all, where they are draws of the same; no draw counts twice."""
    if len(_alike(instances)) != 1:
        return None
    by_seed: dict[int, Progress] = {}
    # two with the same seed have samples in common: the one with more of them counts
    for one in sorted(instances, key=lambda one: one.progress.samples):
        by_seed[one.config.seed] = one.progress
    return FailureProbability.of_campaigns(by_seed.values())


def _from_store(folder: Path) -> Instance:
    campaign = CampaignReader(folder)
    is_running, reason = is_being_written(folder), campaign.about.get("stop_reason")
    progress = campaign.progress()
    last = next(campaign.latest("findings", f"status = '{CONFIRMED}'", 1), None)
    columns = [str(dimension["column"]) for dimension in campaign.dimensions]
    rows = [[row[column] for column in columns] for row in campaign.iterate("findings", "is_distinct")]
    return Instance(
        name=folder.name,
        state=RUNNING if is_running else STOPPED if reason else KILLED,
        config=campaign.config,
        dimensions=[[row["name"], row["kind"], row["low"], row["high"]] for row in campaign.dimensions],
        progress=progress,
        stop_reason=None if is_running else reason,
        seconds_since_finding=None if last is None else max(progress.seconds - last["seconds"], 0.0),
        distinct=np.array(rows, np.float64).reshape(len(rows), len(columns)),
    )


def _from_elsewhere(folder: Path) -> Instance | None:
    """The instance as it shows itself, where another machine may be writing its store; None otherwise.

    A store in use can be read on the machine that writes it, and nowhere else.
    """
    try:
        about, page = About.read(folder), read_page(folder, PROGRESS)
    except (DamagedFile, OSError):
        return None  # it shows nothing, but its store may be all right
    if about.host == platform.node() or page.get("stop_reason"):
        return None
    try:
        progress = Progress(**page["progress"])
        last, parcels, silence = page["last_finding_seconds"], page["parcels"], time.time() - page["at"]
    except (KeyError, TypeError) as error:
        raise DamagedFile(f"{PROGRESS} is damaged: {error}") from error
    return Instance(
        name=folder.name,
        state=RUNNING if is_being_written(folder) or silence < _SILENCE else KILLED,
        config=about.settings(),
        dimensions=about.dimensions,
        progress=progress,
        stop_reason=None,
        seconds_since_finding=None if last is None else max(progress.seconds - last, 0.0),
        distinct=_shown_findings(folder, parcels, len(about.dimensions)),
        host=about.host,
    )


def _shown_findings(folder: Path, parcels: int, dimensions: int) -> NDArray[np.float64]:
    """(n, d) the findings in all parcels that can be read."""
    found = [np.empty((0, dimensions))]
    for number in range(1, parcels + 1):
        try:
            parcel = read_parcel(folder, number, dimensions)
        except (DamagedFile, OSError):
            continue  # the total is then a little low
        found.append(parcel.inputs[parcel.findings > 0])
    return np.concatenate(found)
