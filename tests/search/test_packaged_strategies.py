import sys

import pytest

from policyfuzz import load_target
from policyfuzz.core.errors import TargetCodeError, UsageError
from policyfuzz.search.strategies import STRATEGIES, find_strategy, make_fuzzer, strategy_names

MODULE = """
from policyfuzz import Strategy
from policyfuzz.search.guides import ReturnGuide
from policyfuzz.search.mdpfuzz import EnergySearch

def algorithm(settings, clock):
    return EnergySearch((ReturnGuide(),), settings.samples, explored_share=0.25)

greedy = Strategy("a quarter random", algorithm)
reward = greedy
number = 3
"""
ENTRIES = {"greedy": "greedy", "reward": "reward", "number": "number", "gone": "gone"}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that brings strategies."""
    (tmp_path / "eager_search.py").write_text(MODULE)
    info = tmp_path / "eager_search-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: eager-search\nVersion: 1.0\n")
    lines = [f"{name} = eager_search:{value}" for name, value in ENTRIES.items()]
    (info / "entry_points.txt").write_text("\n".join(["[policyfuzz.strategies]", *lines]))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("eager_search", None)


@pytest.mark.usefixtures("package")
def test_strategy_of_a_package_runs_a_campaign(run_campaign):
    campaign = run_campaign("ripple:dimensions=2,probability=0.01", strategy="greedy", executions=3000)
    assert campaign.config.strategy == "greedy"
    assert campaign.progress().findings
    assert make_fuzzer("greedy", load_target("ripple")).algorithm.explored_share == 0.25


@pytest.mark.usefixtures("package")
def test_built_in_strategy_goes_before_one_of_the_same_name():
    assert find_strategy("reward") is STRATEGIES["reward"]
    assert strategy_names() == (*STRATEGIES, "gone", "greedy", "number")


@pytest.mark.usefixtures("package")
def test_entry_that_is_no_strategy_is_rejected():
    with pytest.raises(UsageError, match="is a int"):
        find_strategy("number")
    with pytest.raises(TargetCodeError, match="strategy gone"):
        find_strategy("gone")


@pytest.mark.usefixtures("package")
def test_unknown_name_lists_those_of_packages():
    with pytest.raises(UsageError, match="greedy"):
        find_strategy("xyz")
