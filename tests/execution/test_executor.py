"""From what a user says about workers to who runs episodes."""

from dataclasses import replace

import pytest

from policyfuzz import load_target
from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Runner
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.executor import TIMEOUT, ExecutorChoice, InlineExecutor, choose_executor


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((), ExecutorChoice("inline")),
        (("inline",), ExecutorChoice("inline")),
        (("processes",), ExecutorChoice("processes")),
        ((None, 3), ExecutorChoice("processes", 3)),
        ((None, None, 2.5), ExecutorChoice("processes", None, 2.5)),
        (("ray",), ExecutorChoice("ray")),
        (("ray:auto", 8), ExecutorChoice("ray", 8, TIMEOUT, "auto")),
        (("ray:10.0.0.1:6379", None, 9.0), ExecutorChoice("ray", None, 9.0, "10.0.0.1:6379")),
    ],
)
def test_choice_follows_from_what_is_said(said, meant):
    assert choose_executor(*said) == meant


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ((None, 0), "workers is 0"),
        ((None, None, 0.0), "timeout is 0 s"),
        ((None, None, float("nan")), "timeout is nan s"),
        (("rya",), "did you mean 'ray'?"),
        (("inline:here",), "no address"),
        (("inline", 2), "leave out -j"),
    ],
)
def test_what_makes_no_sense_is_refused(said, complaint):
    with pytest.raises(UsageError) as caught:
        choose_executor(*said)
    assert complaint in str(caught.value)


def test_target_that_takes_one_worker_gets_no_two():
    target = replace(load_target("ripple"), max_workers=1)
    with pytest.raises(UsageError, match="can be run by 1 worker at a time, and was given 2") as caught:
        choose_executor(None, 2).make_executor(target, TimeSplit())
    assert caught.value.hint == "use -j 1"


def test_one_process_runs_a_few_episodes_itself():
    choice = choose_executor()
    target = load_target("ripple")
    assert isinstance(choice.make_runner(target), Runner)
    assert isinstance(choice.make_executor(target, TimeSplit()), InlineExecutor)
