"""Campaigns on a few discrete starts end when all of them have been tried."""

from dataclasses import replace

import numpy as np
import pytest

from policyfuzz import Budget, InputSpace, Integer, Target
from policyfuzz.campaign.exhaustion import Exhaustion
from policyfuzz.campaign.launch import launch
from policyfuzz.cli.console import results
from policyfuzz.cli.summary import print_summary
from policyfuzz.core.inputs import Choice, Real
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.oracle import Below
from policyfuzz.core.settings import CampaignOptions, StopReason
from policyfuzz.store.reader import CampaignReader


class Board:
    """One step on a board of 5 by 4 fields; two of them are holes, and perhaps the seed digs another one."""

    signals, capacity = ("ground",), None

    def __init__(self, is_lucky):
        self._is_lucky = is_lucky

    def reset(self, inputs, seeds):
        self._ground = np.where((inputs[:, 0] == inputs[:, 1]) & (inputs[:, 0] > 1), -1.0, 1.0)
        if self._is_lucky:
            self._ground[seeds % np.uint64(7) == 0] = -1.0
        return self._frame(np.zeros(len(inputs)), inputs)

    def step(self, actions, rows):
        return self._frame(self._ground[rows], np.zeros((len(rows), 2)))

    def _frame(self, ground, states):
        return Frame(states, states, ground[:, None], ground, ground != 0)


class Idle:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


def board(is_lucky=False):
    space = InputSpace(
        (Integer("row", 0, 4), Choice("column", ("a", "b", "c", "d"))), lambda inputs: inputs[:, 0] != 1
    )
    return Target("python:board", space, lambda: Board(is_lucky), Idle, Below("ground", 0.0, "fell"), 2)


OPTIONS = CampaignOptions(samples=20, batch=16)


@pytest.mark.parametrize("strategy", ["portfolio", "random", "mdpfuzz"])
def test_campaign_stops_when_all_starts_were_tried_and_knows_the_probability(tmp_path, strategy, capsys):
    options = replace(OPTIONS, strategy=strategy)
    launched = launch(board(), Budget(executions=5000), options, folder=tmp_path / "c")
    assert launched.reason is StopReason.EXHAUSTED
    assert launched.progress.executions < 2000
    campaign = CampaignReader(tmp_path / "c")
    assert {tuple(one.input) for one in campaign.findings()} == {(2.0, 2.0), (3.0, 3.0)}
    assert all(one.status == "confirmed" for one in campaign.findings())
    print_summary(results(), campaign, launched.progress, launched.reason.value)
    said = " ".join(capsys.readouterr().out.split())
    assert "stopped by exhausted" in said
    assert "exactly 12.5%: all 16 starts were tried, 2 of them crash" in said


def test_campaign_goes_on_where_the_seed_matters(tmp_path):
    launched = launch(board(is_lucky=True), Budget(executions=1500), OPTIONS, folder=tmp_path / "c")
    assert launched.reason is StopReason.MAX_EXECS


def test_campaign_that_was_stopped_ends_at_the_same_episode(tmp_path):
    whole = launch(board(), Budget(executions=5000), OPTIONS, folder=tmp_path / "whole")
    seen = []

    def stop_early(event):
        seen.append(event)
        if len(seen) == 6:
            raise KeyboardInterrupt

    limit = Budget(executions=5000)
    part = launch(board(), limit, OPTIONS, folder=tmp_path / "parts", listeners=(stop_early,))
    assert part.reason is StopReason.INTERRUPTED
    rest = launch(board(), limit, OPTIONS, folder=tmp_path / "parts", resume=True)
    assert rest.reason is StopReason.EXHAUSTED
    assert rest.progress.executions == whole.progress.executions > part.progress.executions


@pytest.mark.parametrize(
    ("dimensions", "count"),
    [
        ((Integer("a", 0, 9), Integer("b", -1, 1)), 30),
        ((Integer("a", 0, 9), Real("b", -1.0, 1.0)), 0),
        ((Integer("a", 0, 10**9),), 0),
    ],
)
def test_only_a_few_discrete_starts_are_counted(dimensions, count):
    assert len(Exhaustion.of(InputSpace(dimensions), None).starts) == count
