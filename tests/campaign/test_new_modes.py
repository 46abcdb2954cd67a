"""New modes of a running campaign: findings that are far from all earlier ones of their kind."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import BatchDone, Budget, CampaignReader, Progress, Stop
from policyfuzz.campaign.launch import launch
from policyfuzz.campaign.new_modes import MODE_RADIUS, NewModes
from policyfuzz.core.settings import CampaignOptions
from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.store.records import SeedTrial, Verdict
from policyfuzz.targets.registry import load_target
from tests.store.example_findings import a_finding

sys.path.insert(0, str(Path(__file__).parent))
import planted_targets

RIPPLE = "ripple:dimensions=3,probability=0.02"


def at(place: float | None, number: int, kind: str = "fall"):
    behaviour = None if place is None else json.dumps([place] + [0.0] * (DESCRIPTOR_SIZE - 1))
    return a_finding(number, is_novel=True, kind=kind, behaviour=behaviour)


def batch(findings=(), verdicts=(), trials=()) -> BatchDone:
    return BatchDone(Progress(batch=1), list(findings), [], list(verdicts), list(trials))


def confirmed(number: int) -> Verdict:
    return Verdict(number, "confirmed", is_distinct=True)


def numbers(modes: NewModes, *findings) -> list[int]:
    """Numbers of the new modes among `findings`, which are confirmed one after another."""
    modes.take(batch(findings))
    return [one.finding.id for finding in findings for one in modes.take(batch([], [confirmed(finding.id)]))]


def test_finding_is_a_new_mode_when_it_is_far_from_all_of_its_kind():
    near, far = 0.9 * MODE_RADIUS, 2.5 * MODE_RADIUS
    assert numbers(NewModes(), at(0.0, 1), at(near, 2), at(far, 3), at(0.1, 4)) == [1, 3]


def test_region_that_is_explored_in_steps_is_one_mode():
    steps = [at(0.8 * MODE_RADIUS * step, step + 1) for step in range(10)]
    assert numbers(NewModes(), *steps) == [1]


def test_every_kind_has_modes_of_its_own():
    assert numbers(NewModes(), at(0.0, 1, "fall"), at(0.0, 2, "drown"), at(0.0, 3, "fall")) == [1, 2]


def test_only_the_first_of_its_kind_counts_where_behaviours_are_not_known():
    assert numbers(NewModes(), at(None, 1), at(None, 2), at(None, 3, "drown")) == [1, 3]


def test_nothing_counts_before_it_is_confirmed():
    modes = NewModes()
    assert modes.take(batch([at(0.0, 1), at(9.0, 2)])) == []
    assert modes.take(batch([], [Verdict(1, "flaky", False)])) == []
    found = modes.take(batch([], [confirmed(2)]))
    assert [(one.number, one.finding.id, one.is_first_of_kind) for one in found] == [(1, 2, True)]
    assert (found[0].finding.status, found[0].finding.is_distinct) == ("confirmed", True)


def test_finding_on_trial_counts_once_it_is_known_to_hold():
    modes = NewModes()
    modes.take(batch([at(0.0, 1), at(9.0, 2)]))
    on_trial = [Verdict(number, "confirmed", is_distinct=False) for number in (1, 2)]
    assert modes.take(batch([], on_trial)) == []
    over = [SeedTrial(1, 16, 1, False), SeedTrial(2, 16, 15, True)]
    found = modes.take(batch([], [], over))
    assert [(one.finding.id, one.finding.reseeded_crashes) for one in found] == [(2, 15)]


def test_finding_that_is_doubted_later_is_not_told_twice():
    modes = NewModes()
    assert numbers(modes, at(0.0, 1)) == [1]
    assert modes.take(batch([], [], [SeedTrial(1, 0, 0, False)])) == []
    assert modes.take(batch([], [], [SeedTrial(1, 16, 16, True)])) == []


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ripple", "noisy"])
def test_resumed_campaign_knows_the_modes_of_its_first_part(tmp_path, target):
    def told(modes, found, stop_after=None):
        def hear(event):
            found.extend(one.finding.id for one in modes.take(event))
            if stop_after and isinstance(event, BatchDone) and event.progress.batch == stop_after:
                raise Stop

        return hear

    def run(folder, listener, resume=False):
        loaded = load_target(RIPPLE) if target == "ripple" else planted_targets.noisy()
        options = CampaignOptions(batch=64, samples=64) if not resume else CampaignOptions()
        budget = Budget(executions=2200)
        launch(loaded, budget, options, folder=tmp_path / folder, resume=resume, listeners=(listener,))

    whole, parts = [], []
    run("whole", told(NewModes(0.3), whole))
    run("parts", told(NewModes(0.3), parts, stop_after=20))
    assert CampaignReader(tmp_path / "parts").progress().findings > 0, "the stop comes after some findings"
    run("parts", told(NewModes(0.3), parts), resume=True)
    assert parts == whole
    assert len(whole) > 1


def test_events_tell_of_all_episodes_of_the_search(tmp_path):
    heard = []
    launch(load_target(RIPPLE), Budget(executions=1000), folder=tmp_path / "c", listeners=(heard.append,))
    batches = [event for event in heard if isinstance(event, BatchDone)]
    episodes = [event.episodes for event in batches]
    last = batches[-1].progress
    assert sum(int(one.is_random.sum()) for one in episodes) == last.samples
    assert sum(len(one.returns) for one in episodes) == last.samples + last.mutants
    assert sum(sum(one.emitters.values()) for one in episodes) == last.samples + last.mutants
    assert all(np.isfinite(one.margins).all() and len(one.margins) == len(one.returns) for one in episodes)
    assert sum(verdict.status == "confirmed" for one in batches for verdict in one.verdicts) == last.findings
