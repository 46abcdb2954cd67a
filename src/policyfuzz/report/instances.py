"""How all campaigns in a sync folder are doing, one by one and together."""

import math
import platform
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.sync.files import ABOUT, DamagedFile, InstanceInfo, InstanceProgress, read_sync_batch
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.store.database import FILE_NAME, is_being_written
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Progress

if TYPE_CHECKING:
    from policyfuzz.core.inputs import Dimension, InputSpace

#: States of an instance. KILLED: it does not run, and did not stop cleanly. FOREIGN: no campaign.
RUNNING, STOPPED, KILLED, DAMAGED, FOREIGN = "running", "stopped", "killed", "damaged", "foreign"
#: Distinct findings of one instance, and of all, that are compared with each other. More would take too long.
_MOST_COMPARED = 20_000
#: Seconds in which a running instance on another machine replaces its progress.json.
_SILENCE_SECONDS = 60.0
#: Sync batches of an instance on another machine that are read, the newest ones.
_MOST_BATCHES = 10_000


@dataclass(frozen=True, slots=True)
class Instance:
    """One campaign of several."""

    name: str  #: of its folder
    state: str
    config: CampaignConfig
    dimensions: list[list[Any]]  #: name, kind and range of each
    progress: Progress
    stop_reason: str | None
    seconds_since_finding: float | None  #: campaign time; None if nothing was found
    #: (n, d) its distinct findings; None if there are too many to compare them with others
    distinct: NDArray[np.float64] | None = field(repr=False)
    host: str | None = None  #: machine that it runs on, if another one
    is_solvability_tested: bool = False  #: False also if it is not known
    identity: str = ""  #: never changes, whatever its folder is called; empty in files of earlier versions

    @property
    def own_findings(self) -> int:
        """Confirmed findings that were not taken from another instance."""
        return self.progress.findings - self.progress.imported_findings


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A folder beside the instances that holds no campaign, or one that cannot be read."""

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
    findings: int  #: each counted where it was found first
    imported_findings: int
    distinct_findings: int  #: of all instances, none counted twice
    distinct_is_exact: bool  #: False: there are at least so many
    failures: int
    seconds_since_finding: float | None  #: of the instance that found something last
    failure_probability: FailureProbability | None  #: None if they fuzz different things


def holds_instances(folder: Path) -> bool:
    """True if `folder` holds no campaign itself, but folders with campaigns."""
    return not (folder / FILE_NAME).exists() and any(folder.glob(f"*/{FILE_NAME}"))


def instances_in(folder: Path) -> Iterator[Instance | Unreadable]:
    """All folders in `folder`, by name."""
    for path in sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."):
        try:
            if (path / FILE_NAME).exists():
                yield instance_at(path)
            else:
                yield Unreadable(path.name, FOREIGN, "no campaign in it")
        except (CampaignError, DamagedFile) as error:
            yield Unreadable(path.name, DAMAGED, str(error).splitlines()[0])
        except OSError as error:
            yield Unreadable(path.name, DAMAGED, error.strerror or str(error))


def instance_at(folder: Path, is_compared: bool = True) -> Instance:
    """The campaign in `folder`; its distinct findings are read only if it `is_compared` with others."""
    return _from_elsewhere(folder, is_compared) or _from_store(folder, is_compared)


def together(instances: list[Instance]) -> Together:
    """Totals of all `instances`."""
    running = [one for one in instances if one.state == RUNNING]
    distinct = [_distinct_together(group) for group in groups_of(instances)]
    since = [one.seconds_since_finding for one in instances if one.seconds_since_finding is not None]
    return Together(
        instances=len(instances),
        running=len(running),
        workers=sum(one.progress.workers for one in running),
        executions=sum(one.progress.executions for one in instances),
        executions_per_second=sum(one.progress.executions_per_second for one in running),
        findings=sum(one.own_findings for one in instances),
        imported_findings=sum(one.progress.imported_findings for one in instances),
        distinct_findings=sum(count for count, _ in distinct),
        distinct_is_exact=all(is_exact for _, is_exact in distinct),
        failures=sum(one.progress.failures for one in instances),
        seconds_since_finding=min(since, default=None),
        failure_probability=_failure_probability(instances),
    )


def groups_of(instances: list[Instance]) -> list[list[Instance]]:
    """Instances grouped by the target and the policy that they fuzz."""
    groups: dict[tuple[str, ...], list[Instance]] = defaultdict(list)
    for one in instances:
        config = one.config
        key = (config.target, config.policy_sha256, config.code_sha256, repr(one.dimensions))
        groups[key].append(one)
    return list(groups.values())


def _distinct_together(instances: list[Instance]) -> tuple[int, bool]:
    """How many findings of `instances` of the same inputs are distinct, and whether that is exact.

    Across instances only inputs compare: each has its own units of behaviour, from its own samples. If the
    instances differ in their radius, the largest one counts. The instance with the most findings comes first,
    so that all of its findings count. If there are too many to compare, only its findings count.
    """
    most = max(one.progress.distinct_findings for one in instances)
    if len(instances) == 1:
        return most, True
    found = [one.distinct for one in instances if one.distinct is not None]
    if len(found) < len(instances) or sum(map(len, found)) > _MOST_COMPARED:
        return most, False
    # imported here: `status` of a single campaign must not wait for scipy
    from policyfuzz.search.distinct import DistinctSet

    space = _input_space(instances[0].dimensions)
    radius = max(one.config.distinct_radius for one in instances)
    distinct = DistinctSet(radius * math.sqrt(len(space.dimensions)), space.periods)
    for inputs in sorted(found, key=len, reverse=True):
        if len(inputs):
            distinct.add(space.to_unit(inputs))
    return len(distinct), True


def _failure_probability(instances: list[Instance]) -> FailureProbability | None:
    """From the draws of all, if all fuzz the same; no draw counts twice."""
    if len(groups_of(instances)) != 1:
        return None
    by_seed: dict[int, Progress] = {}
    # two with the same seed have samples in common: the one with more of them counts
    for one in sorted(instances, key=lambda one: one.progress.samples):
        by_seed[one.config.seed] = one.progress
    is_tested = all(one.is_solvability_tested for one in instances)
    return FailureProbability.of_campaigns(by_seed.values(), is_tested)


def _from_store(folder: Path, is_compared: bool) -> Instance:
    with closing(CampaignReader(folder)) as campaign:
        return _read_from(campaign, folder, is_compared)


def _read_from(campaign: CampaignReader, folder: Path, is_compared: bool) -> Instance:
    is_running, reason = is_being_written(folder), campaign.stop_reason()
    progress = campaign.progress()
    confirmed = campaign.latest("findings", 1, "status = ?", (CONFIRMED,)) if progress.findings else []
    count = progress.distinct_findings
    dimensions = [[row["name"], row["kind"], row["low"], row["high"]] for row in campaign.dimensions]
    try:
        _input_space(dimensions)
    except (ValueError, OverflowError, UsageError) as error:
        raise CampaignError(f"its dimensions make no sense: {error}") from error
    return Instance(
        name=folder.name,
        state=RUNNING if is_running else STOPPED if reason else KILLED,
        config=campaign.config,
        dimensions=dimensions,
        progress=progress,
        stop_reason=None if is_running else reason,
        seconds_since_finding=max(progress.seconds - confirmed[0]["seconds"], 0.0) if confirmed else None,
        distinct=campaign.distinct_inputs(most=count) if is_compared and count <= _MOST_COMPARED else None,
        is_solvability_tested=campaign.is_solvability_tested,
        identity=campaign.about.get("instance", ""),
    )


def _from_elsewhere(folder: Path, is_compared: bool) -> Instance | None:
    """The instance as its sync files show it, if another machine may be writing its store; else None.

    Only the machine that writes a store can read it meanwhile.
    """
    try:
        info, shown = InstanceInfo.read(folder), InstanceProgress.read(folder)
    except (DamagedFile, OSError):
        return None  # its store may be readable
    if info.host == platform.node() or shown.stop_reason:
        return None
    try:
        _input_space(info.dimensions)
    except UsageError as error:
        raise DamagedFile(f"{ABOUT} is damaged: {error.message}") from error
    progress, last, silence = shown.progress, shown.last_finding_seconds, time.time() - shown.at
    return Instance(
        name=folder.name,
        state=RUNNING if is_being_written(folder) or silence < _SILENCE_SECONDS else KILLED,
        config=info.settings(),
        dimensions=info.dimensions,
        progress=progress,
        stop_reason=None,
        seconds_since_finding=None if last is None else max(progress.seconds - last, 0.0),
        distinct=_findings_in_sync_batches(folder, shown.batches, info.dimensions) if is_compared else None,
        host=info.host,
        is_solvability_tested=progress.unsolvable > 0,
        identity=info.instance,
    )


def _findings_in_sync_batches(
    folder: Path, batches: int, dimensions: list[list[Any]]
) -> NDArray[np.float64] | None:
    """(n, d) the findings in range in all sync batches that can be read; None if there are too many."""
    low, high = np.array([row[2:] for row in dimensions], np.float64).T
    found, count = [np.empty((0, len(dimensions)))], 0
    for number in range(batches, max(batches - _MOST_BATCHES, 0), -1):
        try:
            batch = read_sync_batch(folder, number, len(dimensions))
        except (DamagedFile, OSError):
            continue  # the total is then a little low
        is_shown = (batch.findings > 0) & ((batch.inputs >= low) & (batch.inputs <= high)).all(axis=1)
        found.append(batch.inputs[is_shown])
        count += len(found[-1])
        if count > _MOST_COMPARED:
            return None
    return np.concatenate(found[::-1])


def _input_space(dimensions: list[list[Any]]) -> "InputSpace":
    """A space that maps to the unit cube as the one of these stored `dimensions` does."""
    from policyfuzz.core.inputs import Angle, Choice, InputSpace, Integer, Real, Seed

    made: list[Dimension] = []
    for name, kind, low, high in dimensions:
        if kind == Angle.kind:
            made.append(Angle(name))
        elif kind in (Choice.kind, Integer.kind):  # both map to the unit cube alike
            made.append(Integer(name, int(low), int(high)))
        elif kind == Seed.kind:
            made.append(Seed(name, int(low), int(high)))
        else:
            made.append(Real(name, low, high))
    return InputSpace(tuple(made))
