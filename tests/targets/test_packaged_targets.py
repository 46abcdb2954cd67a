from importlib.metadata import EntryPoint

import pytest

from policyfuzz import load_target
from policyfuzz.core.errors import TargetCodeError, UsageError
from policyfuzz.targets import registry


def make_target(options, policy):
    """What a package would bring: the synthetic target under another name."""
    return load_target(f"ripple:dimensions={options.get('size', '2')}", policy)


def broken(options, policy):
    raise RuntimeError("no licence found")


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    entries = [
        EntryPoint("pond", f"{__name__}:make_target", registry.GROUP),
        EntryPoint("broken", f"{__name__}:broken", registry.GROUP),
    ]
    monkeypatch.setattr(EntryPoint, "load", lambda self: {"pond": make_target, "broken": broken}[self.name])
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)


def test_target_of_a_package_is_loaded_by_its_name():
    target = load_target("pond:size=3")
    assert target.name == "pond:size=3"
    assert len(target.inputs.dimensions) == 3
    assert load_target(target.name).inputs.names == target.inputs.names


def test_target_of_a_package_that_fails_is_blamed():
    with pytest.raises(TargetCodeError, match="target broken raised RuntimeError: no licence found"):
        load_target("broken")


def test_unknown_target_gets_a_suggestion_from_packages_too():
    with pytest.raises(UsageError, match="did you mean 'pond'"):
        load_target("pund")


def test_registered_environment_without_its_scheme_is_recognised():
    with pytest.raises(UsageError, match="did you mean gym:CartPole-v1"):
        load_target("CartPole-v1")
