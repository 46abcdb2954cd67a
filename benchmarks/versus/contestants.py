"""Who takes part: strategies of PolicyFuzz, each run as a whole campaign, and its peers."""

import time
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from benchmarks.campaigns import finished_campaign
from benchmarks.versus import peers
from benchmarks.versus.targets import Entry
from benchmarks.versus.trial import Contestant, Trial
from policyfuzz.core.errors import unknown_name
from policyfuzz.core.settings import DEFAULT_STRATEGY, CampaignOptions
from policyfuzz.core.target import Target
from policyfuzz.search.strategies import STRATEGIES, strategy_names
from policyfuzz.store.records import CONFIRMED, Finding

#: Name in the bench of the default strategy, and of the contestant that all others are compared with.
OURS = "default"
#: One of them runs a few episodes a second; both modes have fewer episodes and seeds, to be comparable.
SLOW_PEERS = frozenset({"pypi-mdpfuzz", "pypi-mdpfuzz-no-coverage"})


@dataclass(frozen=True, slots=True)
class CampaignTrial(Trial):
    """A trial of which is known where its time went."""

    simulated_seconds: float  #: of all seconds, for episodes and for judging inputs
    times: NDArray[np.float64]  #: (f,) seconds when each claim was made


@dataclass(frozen=True, slots=True)
class CampaignContestant:
    """A strategy with the settings that `policyfuzz fuzz` would give it."""

    strategy: str

    def __call__(self, target: Target, episodes: int, seed: int) -> CampaignTrial:
        """Run a campaign of exactly so many `episodes`, second runs of findings included."""
        options = CampaignOptions(strategy=self.strategy, seed=seed)
        started, cpu_started = time.perf_counter(), time.process_time()
        # what the health check dislikes is the same for all, and no reason to leave a target out
        with finished_campaign(target, episodes, options, force=True) as store:
            seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
            progress = store.progress()
            found = [finding for finding in store.findings() if finding.status == CONFIRMED]
        found.sort(key=lambda finding: finding.execution)
        return CampaignTrial(
            episodes=progress.executions,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
            numbers=np.array([finding.execution for finding in found], np.int64),
            inputs=_inputs(found, len(target.inputs.dimensions)),
            seeds=np.array([finding.case_seed for finding in found], np.uint64),
            simulated_seconds=progress.simulate_seconds + progress.validate_seconds,
            times=np.array([finding.seconds for finding in found]),
            roots=_roots(found),
        )


def episodes_of(name: str, entry: Entry) -> int:
    """Episodes that the contestant called `name` gets on a target."""
    return entry.slow_peer_episodes if name in SLOW_PEERS else entry.episodes


def own_names() -> tuple[str, ...]:
    """Our strategies: the default, then all others that come with the package."""
    return (OURS, *(name for name in STRATEGIES if name != DEFAULT_STRATEGY))


def contestant_names() -> tuple[str, ...]:
    """All that take part unless others are asked for, our own first."""
    return (*own_names(), *peers.PEERS)


def is_own(name: str) -> bool:
    """True for a strategy, whether it comes with the package or not; False for a peer."""
    return name not in peers.PEERS


def find_contestant(name: str) -> Contestant:
    """The contestant called `name`, or any strategy; MissingExtra where its packages are not installed."""
    if name in peers.PEERS:
        return peers.PEERS[name]()
    if name == OURS:
        return CampaignContestant(DEFAULT_STRATEGY)
    if name in strategy_names():
        return CampaignContestant(name)
    raise unknown_name("contestant", name, {*contestant_names(), *strategy_names()})


def _inputs(found: list[Finding], dimensions: int) -> NDArray[np.float64]:
    """(f, d) inputs of findings."""
    return np.array([finding.input for finding in found], np.float64).reshape(len(found), dimensions)


def _roots(found: list[Finding]) -> NDArray[np.int64] | None:
    """(f,) where the lineages of findings begin; None if campaigns do not store that."""
    if "root" not in {field.name for field in fields(Finding)}:
        return None
    # a finding that descends from nothing is a lineage of its own
    known = ((one.id, getattr(one, "root", None)) for one in found)
    return np.array([-number if root is None else root for number, root in known], np.int64)
