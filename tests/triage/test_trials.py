"""Searches that run together."""

import numpy as np

from policyfuzz.core.executions import Executions
from policyfuzz.triage import trials
from policyfuzz.triage.trials import Trial, run_together


def asking(rounds):
    """A search that asks for one episode in each of some rounds, and returns how many it got."""
    got = []
    for _ in range(rounds):
        got += yield [Trial(np.zeros(1), 0)]
    return len(got)


def test_no_more_searches_run_at_once_than_allowed():
    batches = []

    def run(inputs, seeds, *, branches=None):
        batches.append(len(inputs))
        return Executions.of([0.0] * len(inputs), [False] * len(inputs))

    found = dict(run_together((asking(3) for _ in range(150)), run, run, 1))
    assert found == dict.fromkeys(range(150), 3)
    assert max(batches) == trials._AT_ONCE


def test_a_search_that_asks_for_nothing_ends_at_once():
    def never(inputs, seeds, *, branches=None):
        raise AssertionError("nothing was asked for")

    assert dict(run_together([asking(0), asking(0)], never, never, 1)) == {0: 0, 1: 0}
