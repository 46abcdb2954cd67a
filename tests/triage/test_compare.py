"""Two policies on the same cases, without a campaign."""

from dataclasses import replace

import numpy as np
import pytest

from policyfuzz import Executions, InputSpace, Real, load_target
from policyfuzz.core.errors import UsageError
from policyfuzz.environments.live import digest
from policyfuzz.store.comparisons import ERROR, FAILS, FINDINGS_OF_A, PASSES, POOL
from policyfuzz.triage.compare import (
    Case,
    Contestant,
    check_comparable,
    pool_of,
    run_pairs,
)


def contestant(limit, log=None, errors=()):
    """Fails below `limit`; cannot run the inputs of `errors`."""

    def run(inputs, seeds):
        if log is not None:
            log.append(list(zip(inputs[:, 0].tolist(), seeds.tolist(), strict=True)))
        x = inputs[:, 0]
        return Executions.of(x, x < limit, errors=dict.fromkeys(np.flatnonzero(np.isin(x, errors)), "no"))

    return Contestant(run, ("crash",))


def cases(count, group=POOL):
    return [Case(group, None, np.array([number / count]), number) for number in range(count)]


def test_both_policies_get_the_same_inputs_and_case_seeds():
    logs = [], []
    endings = {}
    for some in run_pairs(cases(10), {}, (contestant(0.5, logs[0]), contestant(0.3, logs[1])), 4):
        endings |= some
    assert logs[0] == logs[1]
    assert [len(batch) for batch in logs[0]] == [4, 4, 2]
    ends = [tuple(one.what for one in endings[case.key]) for case in cases(10)]
    assert ends == [(FAILS, FAILS)] * 3 + [(FAILS, PASSES)] * 2 + [(PASSES, PASSES)] * 5


def test_known_cases_are_not_run_again():
    both = contestant(0.5), contestant(0.3)
    first = next(run_pairs(cases(10), {}, both, 4))
    log = []
    rest = list(run_pairs(cases(10), first, (contestant(0.5, log), both[1]), 4))
    assert [len(batch) for batch in log] == [4, 2]
    assert not {*first} & {key for some in rest for key in some}


def test_groups_take_turns():
    log = []
    mixed = cases(8, FINDINGS_OF_A) + [
        Case(POOL, None, np.array([2 + number / 4]), number) for number in range(4)
    ]
    list(run_pairs(mixed, {}, (contestant(0.5, log), contestant(0.3)), 2))
    is_pool = [batch[0][0] >= 2 for batch in log]
    assert is_pool == [False, True, False, False, True, False]


def test_episode_that_cannot_be_run_is_neither_a_failure_nor_a_pass():
    (endings,) = run_pairs(cases(4), {}, (contestant(0.3, errors=(0.5,)), contestant(0.3)), 9)
    a, b = endings[cases(4)[2].key]
    assert (a.what, b.what) == (ERROR, PASSES)


def test_larger_pool_begins_with_the_smaller_one_and_another_seed_draws_another():
    target = load_target("ripple:dimensions=2")
    small, large, other = pool_of(target, 10, 0), pool_of(target, 600, 0), pool_of(target, 10, 1)
    assert [one.key for one in small] == [one.key for one in large[:10]]
    assert len({one.key for one in large}) == 600
    assert not {one.key for one in small} & {one.key for one in other}


def test_pool_is_not_what_a_campaign_of_the_same_seed_draws():
    from policyfuzz import make_fuzzer

    target = load_target("ripple:dimensions=2")
    drawn = make_fuzzer("random", target, seed=0).ask(256).inputs
    assert not {tuple(row) for row in drawn} & {tuple(one.input) for one in pool_of(target, 256, 0)}


def test_pool_is_solvable_where_that_is_tested():
    space = InputSpace((Real("x", 0, 1), Real("y", 0, 1)), constraint=lambda inputs: inputs[:, 0] < 0.7)
    ripple = load_target("ripple:dimensions=2")
    target = replace(ripple, inputs=space, solvable=lambda inputs: inputs[:, 1] < 0.4)
    inputs = np.array([one.input for one in pool_of(target, 300, 0)])
    assert (inputs < [0.7, 0.4]).all()


def test_targets_that_differ_in_their_inputs_are_refused():
    with pytest.raises(UsageError, match="the same inputs"):
        check_comparable(load_target("ripple:dimensions=2"), load_target("ripple:dimensions=3"))


def test_a_file_never_answers_for_another_object():
    class Policy:
        def begin(self, count): ...

        def act(self, observations, rows):
            return observations

    target = replace(load_target("ripple:dimensions=2"), name="python:ripple", policy_sha256=digest(Policy()))
    assert not target.is_identified
    with pytest.raises(UsageError, match="cannot be told"):
        target.check_identified()
    assert replace(target, policy_sha256="0" * 64).is_identified
    assert load_target("ripple:dimensions=2").is_identified
