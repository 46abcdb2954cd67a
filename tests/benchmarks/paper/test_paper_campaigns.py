from dataclasses import replace
from functools import partial

import pytest

from benchmarks.paper import campaigns
from benchmarks.paper.results import Identity
from benchmarks.paper.scenarios import choose
from policyfuzz.campaign.events import BatchDone, Stop
from policyfuzz.campaign.launch import launch

IDENTITY = Identity("campaign-mdpfuzz-published", "acasxu", "episodes-200", {}, 0, "", "", "code")


class StopsAfter:
    """A listener that ends a campaign as Ctrl-C does, after some batches."""

    def __init__(self, batches):
        self.left = batches

    def __call__(self, event):
        if isinstance(event, BatchDone):
            self.left -= 1
            if self.left == 0:
                raise Stop


@pytest.fixture
def run():
    """Run a campaign of 200 episodes in a folder."""
    (scenario,) = choose(("acasxu",), "small", 200, None)
    target = scenario.load()
    return lambda folder, identity=IDENTITY: campaigns.run_campaign(
        scenario, target, "mdpfuzz-published", folder, identity
    )


@pytest.mark.slow
def test_a_campaign_that_was_left_goes_on_and_finds_the_same(run, tmp_path, monkeypatch):
    whole, costs = run(tmp_path / "whole")
    assert whole["executions"] == 200
    assert not costs["is_resumed"]
    monkeypatch.setattr(campaigns, "launch", partial(launch, listeners=[StopsAfter(3)]))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "left")
    monkeypatch.undo()
    found, costs = run(tmp_path / "left")
    assert found == whole
    assert costs["is_resumed"]


@pytest.mark.slow
def test_a_campaign_that_was_begun_with_other_code_starts_anew(run, tmp_path, monkeypatch):
    monkeypatch.setattr(campaigns, "launch", partial(launch, listeners=[StopsAfter(3)]))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "left", replace(IDENTITY, code="older"))
    monkeypatch.undo()
    _, costs = run(tmp_path / "left")
    assert not costs["is_resumed"]
