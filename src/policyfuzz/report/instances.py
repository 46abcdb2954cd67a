"""How all campaigns in a sync folder are doing, one by one and together."""

import platform
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.sync.files import PROGRESS, DamagedFile, InstanceInfo, read_json, read_sync_batch
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.store.database import FILE_NAME, is_being_written
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Progress

if TYPE_CHECKING:
    from policyfuzz.core.inputs import Dimension, InputSpace

#: States of an instance. KILLED: it does not run, and did not stop cleanly. FOREIGN: no campaign.
RUNNING, STOPPED, KILLED, DAMAGED, FOREIGN = "running", "stopped", "killed", "damaged", "foreign"
#: Seconds in which a running instance on another machine replaces its progress.json.
_SILENCE_SECONDS = 60.0


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
    distinct: NDArray[np.float64] = field(repr=False)  #: (n, d) its distinct findings
    host: str | None = None  #: machine that it runs on, if another one
    is_solvability_tested: bool = False  #: False also if it is not known

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
                yield _from_elsewhere(path) or _from_store(path)
            else:
                yield Unreadable(path.name, FOREIGN, "no campaign in it")
        except (CampaignError, DamagedFile) as error:
            yield Unreadable(path.name, DAMAGED, str(error).splitlines()[0])
        except OSError as error:
            yield Unreadable(path.name, DAMAGED, error.strerror or str(error))


def together(instances: list[Instance]) -> Together:
    """Totals of all `instances`."""
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
        distinct_findings=sum(map(_distinct_together, _groups(instances))),
        failures=sum(one.progress.failures for one in instances),
        seconds_since_finding=min(since, default=None),
        failure_probability=_failure_probability(instances),
    )


def _groups(instances: list[Instance]) -> list[list[Instance]]:
    """Instances grouped by the target and the policy that they fuzz."""
    groups: dict[tuple[str, ...], list[Instance]] = defaultdict(list)
    for one in instances:
        config = one.config
        key = (config.target, config.policy_sha256, config.code_sha256, repr(one.dimensions))
        groups[key].append(one)
    return list(groups.values())


def _distinct_together(instances: list[Instance]) -> int:
    """How many findings of `instances` of the same inputs are distinct.

    If the instances differ in their radius, the largest one counts. The instance with the most findings comes
    first, so that all of its findings count.
    """
    # imported here: `status` of a single campaign must not wait for scipy
    from policyfuzz.search.distinct import DistinctSet

    space = _input_space(instances[0].dimensions)
    distinct = DistinctSet(max(one.config.distinct_radius for one in instances), space.periods)
    for one in sorted(instances, key=lambda one: -len(one.distinct)):
        if len(one.distinct):
            distinct.add(space.to_unit(one.distinct))
    return len(distinct)


def _failure_probability(instances: list[Instance]) -> FailureProbability | None:
    """From the draws of all, if all fuzz the same; no draw counts twice."""
    if len(_groups(instances)) != 1:
        return None
    by_seed: dict[int, Progress] = {}
    # two with the same seed have samples in common: the one with more of them counts
    for one in sorted(instances, key=lambda one: one.progress.samples):
        by_seed[one.config.seed] = one.progress
    is_tested = all(one.is_solvability_tested for one in instances)
    return FailureProbability.of_campaigns(by_seed.values(), is_tested)


def _from_store(folder: Path) -> Instance:
    campaign = CampaignReader(folder)
    is_running, reason = is_being_written(folder), campaign.stop_reason()
    progress = campaign.progress()
    confirmed = campaign.latest("findings", 1, "status = ?", (CONFIRMED,))
    columns = campaign.input_columns
    rows = [[row[column] for column in columns] for row in campaign.iterate("findings", "is_distinct")]
    return Instance(
        name=folder.name,
        state=RUNNING if is_running else STOPPED if reason else KILLED,
        config=campaign.config,
        dimensions=[[row["name"], row["kind"], row["low"], row["high"]] for row in campaign.dimensions],
        progress=progress,
        stop_reason=None if is_running else reason,
        seconds_since_finding=max(progress.seconds - confirmed[0]["seconds"], 0.0) if confirmed else None,
        distinct=np.array(rows, np.float64).reshape(len(rows), len(columns)),
        is_solvability_tested=campaign.is_solvability_tested,
    )


def _from_elsewhere(folder: Path) -> Instance | None:
    """The instance as its sync files show it, if another machine may be writing its store; else None.

    Only the machine that writes a store can read it meanwhile.
    """
    try:
        info, page = InstanceInfo.read(folder), read_json(folder, PROGRESS)
    except (DamagedFile, OSError):
        return None  # its store may be readable
    if info.host == platform.node() or page.get("stop_reason"):
        return None
    try:
        progress = Progress(**page["progress"])
        last, batches, silence = page["last_finding_seconds"], page["parcels"], time.time() - page["at"]
    except (KeyError, TypeError) as error:
        raise DamagedFile(f"{PROGRESS} is damaged: {error}") from error
    return Instance(
        name=folder.name,
        state=RUNNING if is_being_written(folder) or silence < _SILENCE_SECONDS else KILLED,
        config=info.settings(),
        dimensions=info.dimensions,
        progress=progress,
        stop_reason=None,
        seconds_since_finding=None if last is None else max(progress.seconds - last, 0.0),
        distinct=_findings_in_sync_batches(folder, batches, len(info.dimensions)),
        host=info.host,
        is_solvability_tested=progress.unsolvable > 0,
    )


def _findings_in_sync_batches(folder: Path, batches: int, dimensions: int) -> NDArray[np.float64]:
    """(n, d) the findings in all sync batches that can be read."""
    found = [np.empty((0, dimensions))]
    for number in range(1, batches + 1):
        try:
            batch = read_sync_batch(folder, number, dimensions)
        except (DamagedFile, OSError):
            continue  # the total is then a little low
        found.append(batch.inputs[batch.findings > 0])
    return np.concatenate(found)


def _input_space(dimensions: list[list[Any]]) -> "InputSpace":
    """A space that maps to the unit cube as the one of these stored `dimensions` does."""
    from policyfuzz.core.inputs import Angle, Choice, InputSpace, Integer, Real, Seed

    made: list[Dimension] = []
    for name, kind, low, high in dimensions:
        if kind == Angle.kind:
            made.append(Angle(name))
        elif kind == Choice.kind:
            made.append(Choice(name, tuple(str(number) for number in range(int(high) + 1))))
        elif kind == Integer.kind:
            made.append(Integer(name, int(low), int(high)))
        elif kind == Seed.kind:
            made.append(Seed(name, int(low), int(high)))
        else:
            made.append(Real(name, low, high))
    return InputSpace(tuple(made))
