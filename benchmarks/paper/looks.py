"""Parts that look at finished campaigns: coverage (RQ2), activations (RQ3), detectors and repair (RQ4)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.paper import campaigns
from benchmarks.paper.scenarios import Scenario
from policyfuzz.analysis.activation_map import MapSettings, map_activations
from policyfuzz.analysis.coverage import CoverageSettings, cover_campaigns
from policyfuzz.analysis.monitor_study import MonitorSettings, fit_monitor_to
from policyfuzz.core.errors import MissingExtra, PolicyFuzzError
from policyfuzz.core.target import Runner, Target
from policyfuzz.execution.executor import choose_executor
from policyfuzz.store.activations_file import FEWEST_LINEAGES, ActivationMap
from policyfuzz.store.coverage_file import Coverage
from policyfuzz.store.monitor_record import MonitorRecord
from policyfuzz.store.plain_records import from_plain, to_plain
from policyfuzz.store.reader import CampaignReader

#: Folders of the package that decide what a look sees.
CODE = ("analysis", "monitors", *campaigns.CODE)
#: Campaigns whose coverage is compared; random sampling is drawn beside them anyway.
COVERED = ("mdpfuzz-published", "reward-published", "mdpfuzz", "default")
#: Episodes of each campaign whose states are compared, at most: all of them, and not only those it kept.
_COVERED_EPISODES = 5_000
#: Random episodes that a detector is tested on, and as a multiple of those of a campaign.
_FEWEST_DRAWS, _MOST_DRAWS, _DRAWS_FACTOR = 100, 20_000, 2

#: What was found, and what it cost: plain data both.
Outcome = tuple[dict[str, Any], dict[str, Any]]


def coverage(scenario: Scenario, target: Target, out: Path) -> Outcome:
    """What states and behaviours the campaigns covered, with freshness and without."""
    episodes = min(scenario.size.episodes, _COVERED_EPISODES)
    settings = CoverageSettings(episodes=episodes, is_every_episode=True)
    with _opened(scenario, out, *COVERED) as readers:
        found = cover_campaigns(readers, target, choose_executor(None, None), settings)
    named = tuple(
        # an instance is another one in every run
        replace(one, name=strategy, group=strategy, instance="")
        for one, strategy in zip(found.campaigns, COVERED, strict=True)
    )
    return {"coverage": to_plain(replace(found, campaigns=named))}, {}


def activations(scenario: Scenario, target: Target, out: Path) -> Outcome:
    """Where crashes lie among normal, nearly crashing and randomly mutated episodes, inside the policy."""
    subject = _subject(scenario, out)
    with _opened(scenario, out, subject) as (reader,):
        try:
            found = map_activations(reader, target, MapSettings(count=scenario.size.looked_at))
        except MissingExtra:
            raise
        except PolicyFuzzError as error:  # too few crashes: an answer too
            return {"campaign": subject, "refused": _without_folders(error.message, [reader])}, {}
    return {"campaign": subject, "map": to_plain(replace(found, instance=""))}, {}


def detector(scenario: Scenario, target: Target, out: Path) -> Outcome:
    """How well detectors tell crashes of lineages that they were not fitted to."""
    subject = _subject(scenario, out)
    draws = min(max(_DRAWS_FACTOR * scenario.size.episodes, _FEWEST_DRAWS), _MOST_DRAWS)
    settings = MonitorSettings(episodes=scenario.size.looked_at, draws=draws)
    with _opened(scenario, out, subject) as readers:
        try:
            record = fit_monitor_to(target, readers, Runner(target), settings).record
        except MissingExtra:
            raise
        except PolicyFuzzError as error:
            return {"campaign": subject, "refused": _without_folders(error.message, readers)}, {}
    plain = replace(record, campaigns=(subject,), why_no_auc=_without_folders(record.why_no_auc, readers))
    return {"campaign": subject, "record": to_plain(plain)}, {}


def _without_folders(text: str, readers: Sequence[CampaignReader]) -> str:
    """`text` with campaigns by their names: a result does not depend on the folder that it lies in."""
    for reader in readers:
        text = text.replace(str(reader.folder), reader.folder.name)
    return text


def stored_coverage(found: Mapping[str, Any]) -> Coverage:
    """The record that `coverage` stored."""
    return from_plain(Coverage, found["coverage"])


def stored_map(found: Mapping[str, Any]) -> ActivationMap:
    """The record that `activations` stored."""
    return from_plain(ActivationMap, found["map"])


def stored_record(found: Mapping[str, Any]) -> MonitorRecord:
    """The record that `detector` stored."""
    return from_plain(MonitorRecord, found["record"])


def _subject(scenario: Scenario, out: Path) -> str:
    """Whose crashes are looked into: those of the paper's method if they are of enough lineages."""
    with _opened(scenario, out, "mdpfuzz-published") as (reader,):
        return "mdpfuzz-published" if reader.progress().lineages >= FEWEST_LINEAGES else "default"


@contextmanager
def _opened(scenario: Scenario, out: Path, *strategies: str) -> Iterator[list[CampaignReader]]:
    """The campaigns of these `strategies` with seed 0."""
    readers = [CampaignReader(campaigns.folder_of(scenario, out, name, 0)) for name in strategies]
    try:
        yield readers
    finally:
        for reader in readers:
            reader.close()
