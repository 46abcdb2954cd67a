"""The default search finds all there is, and far more of it than random sampling does."""

import numpy as np
import pytest

from policyfuzz import Runner, load_target, make_fuzzer
from policyfuzz.core.settings import DEFAULT_STRATEGY
from policyfuzz.search.distinct import DistinctSet
from policyfuzz.targets.ripple.target import Pond

pytestmark = pytest.mark.slow


def crashes_of(target, strategy, seed, episodes):
    """(n, d) inputs that crashed."""
    fuzzer, runner, left, found = make_fuzzer(strategy, target, seed=seed), Runner(target), episodes, []
    while left:
        cases = fuzzer.ask(min(target.batch_size, left))
        left -= len(cases)
        found.append(cases.inputs[fuzzer.tell(cases, runner(cases.inputs, cases.seeds)).crashed])
    return np.concatenate(found)


def test_all_regions_of_one_in_ten_thousand_are_found_with_most_seeds():
    target = load_target("ripple:dimensions=10,regions=3,probability=0.0001")
    pond, complete = Pond.make(10, 3, 1e-4), 0
    for seed in range(10):
        crashes = crashes_of(target, DEFAULT_STRATEGY, seed, 20_000)
        complete += set(pond.nearest(crashes)[0].tolist()) == {0, 1, 2}
    assert complete >= 9


@pytest.mark.parametrize(
    ("name", "episodes"), [("ripple:dimensions=3,regions=3,probability=0.0001", 20_000), ("acasxu", 8000)]
)
def test_distinct_findings_are_many_times_those_of_random_sampling(name, episodes):
    target = load_target(name)
    searched, sampled = (
        DistinctSet(0.01, target.inputs.periods).add(
            target.inputs.to_unit(crashes_of(target, strategy, 0, episodes))
        )
        for strategy in (DEFAULT_STRATEGY, "random")
    )
    assert searched.sum() > 10 * sampled.sum()
