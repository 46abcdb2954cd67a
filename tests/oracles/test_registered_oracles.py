import sys

import pytest

from policyfuzz.core.errors import TargetCodeError, UsageError
from policyfuzz.oracles import (
    AnyOf,
    InfoTrue,
    Terminated,
    WithKind,
    canonical,
    info_keys,
    looks_at,
    parse_oracle,
)

MODULE = """
from policyfuzz.oracles import InfoTrue, Reward

class Jerk(InfoTrue):
    info_keys = ("jerk",)

    def __init__(self):
        super().__init__("jerk")

ready = Reward("<", -5.0)

def broken():
    raise ValueError("no licence")

def nothing():
    return 3
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package that brings oracles; gives a function that installs another one."""

    def install(name, entries, source=MODULE):
        (tmp_path / f"{name}.py").write_text(source)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{key} = {name}:{value}" for key, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[policyfuzz.oracles]", *lines]))

    monkeypatch.syspath_prepend(tmp_path)
    install(
        "smooth_driving",
        {"jerky": "Jerk", "ready": "ready", "broken": "broken", "nothing": "nothing", "gone": "gone"},
    )
    yield install
    sys.modules.pop("smooth_driving", None)


def test_an_oracle_of_a_package_is_a_word_like_any_other(package):
    oracle = parse_oracle("terminated | jerky as rough")
    assert isinstance(oracle, AnyOf)
    assert oracle.first == Terminated()
    assert isinstance(oracle.second, WithKind)
    assert isinstance(oracle.second.oracle, InfoTrue)
    assert oracle.kinds == ("terminated", "rough")
    assert canonical("jerky|ready") == "jerky | ready"


def test_an_oracle_of_a_package_can_be_an_object(package):
    assert parse_oracle("ready").kinds == ("reward below -5",)


def test_an_oracle_of_a_package_says_which_keys_it_needs(package):
    assert info_keys("jerky | info.speed>3 | ready") == ("jerk", "speed")


def test_names_of_packages_are_suggested(package):
    with pytest.raises(UsageError, match="unknown word 'jerkey'") as caught:
        parse_oracle("jerkey")
    assert caught.value.hint == "did you mean 'jerky'?"


@pytest.mark.parametrize(("name", "what"), [("broken", "no licence"), ("gone", "gone")])
def test_code_of_a_package_that_fails_is_named(package, name, what):
    with pytest.raises(TargetCodeError, match=f"the code of oracle {name} raised .*{what}"):
        parse_oracle(name)


def test_something_that_is_no_oracle_is_refused(package):
    with pytest.raises(UsageError, match=r"oracle nothing \(smooth_driving:nothing\) is int"):
        parse_oracle("nothing")


def test_a_name_that_two_packages_use_is_refused(package):
    package("rough_driving", {"jerky": "Jerk"})
    with pytest.raises(UsageError, match=r"several .* jerky: rough_driving:Jerk, smooth_driving:Jerk"):
        parse_oracle("jerky")


def test_a_word_of_a_package_looks_at_the_keys_of_info_it_asks_for(package):
    assert looks_at("terminated | jerky & ready") == ("terminated", "jerky", "info.jerk", "ready")
