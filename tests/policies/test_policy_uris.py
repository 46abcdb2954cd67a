import sys
from importlib.metadata import EntryPoint, EntryPoints

import numpy as np
import pytest
from gymnasium import spaces

from policyfuzz.core.errors import PolicyError, TargetCodeError, UsageError
from policyfuzz.policies import uri as uris
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri import load_policy, schemes

CART = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Discrete(2))
BALL = Spaces(spaces.Box(-np.inf, np.inf, (4,)), spaces.Box(-3, 3, (2,)))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("model.onnx", "onnx:model.onnx"),
        ("runs/model.pt", "torchscript:runs/model.pt"),
        ("model.zip", "sb3:model.zip"),
        ("weights.npz", "npz:weights.npz"),
        ("controller.py", "py:controller.py:FUNCTION"),
        (r"C:\models\model.onnx", r"onnx:C:\models\model.onnx"),
        ("controller.py:act", "py:controller.py:act"),
    ],
)
def test_a_bare_path_gets_the_scheme_it_needs(given, meant):
    with pytest.raises(UsageError) as caught:
        load_policy(given, CART)
    assert caught.value.hint == f"did you mean {meant}?"


def test_a_bare_path_is_judged_by_its_content(tmp_path):
    file = tmp_path / "policy.zip"
    with file.open("wb") as opened:
        np.savez(opened, W0=np.zeros((4, 2)))
    with pytest.raises(UsageError, match=f"did you mean npz:{file}"):
        load_policy(str(file), CART)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("onx:a", "onnx"),
        ("ONNX:a", "onnx"),
        ("python:a:b", "py"),
        ("torch:a.pt", "torchscript"),
        ("sb:a", "sb3"),
    ],
)
def test_an_unknown_scheme_gets_a_did_you_mean(given, meant):
    with pytest.raises(UsageError, match=f"did you mean '{meant}'"):
        load_policy(given, CART)


def test_a_word_that_is_no_path_gets_the_form():
    with pytest.raises(UsageError, match="not of the form SCHEME:FILE"):
        load_policy("policy", CART)


@pytest.mark.parametrize("scheme", ["onnx", "torchscript", "npz"])
def test_a_missing_file_gets_the_nearest_name(tmp_path, scheme):
    (tmp_path / "controler.bin").write_bytes(b"")
    with pytest.raises(PolicyError, match=r"no file .*controller\.bin") as caught:
        load_policy(f"{scheme}:{tmp_path / 'controller.bin'}", CART)
    assert caught.value.hint == "did you mean 'controler.bin'?"


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "policy.onnx").write_bytes(b"")
    with pytest.raises(PolicyError, match="is a folder") as caught:
        load_policy(f"onnx:{tmp_path}", CART)
    assert "policy.onnx" in caught.value.hint


def test_a_scheme_without_a_file_is_refused():
    with pytest.raises(PolicyError, match="names no file"):
        load_policy("onnx:", CART)


def test_an_unknown_option_gets_a_did_you_mean():
    with pytest.raises(UsageError, match="did you mean 'output'"):
        load_policy("onnx:model.onnx?outputs=a", CART)


@pytest.mark.parametrize(
    "name", ["a b.npz", "a+b.npz", "100%25.npz", "a#1.npz", "a&b=c.npz", "ä;~.npz", "a:b.npz"]
)
def test_a_path_means_the_file_as_it_is_written(tmp_path, monkeypatch, name):
    np.savez(tmp_path / name, W0=np.ones((4, 2)))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path / name, name, f"~/{name}"):
        loaded = load_policy(f"npz:{place}?rescale&", BALL)
        assert loaded.uri == f"npz:{tmp_path / name}?rescale"
        assert load_policy(loaded.uri, BALL).sha256 == loaded.sha256


def test_the_value_of_an_option_is_taken_as_it_is_written():
    address = uris.Address.parse("sb3", "a.zip?normalize=b+c%20=d#1.pkl&algo", {"normalize": "", "algo": ""})
    assert address.options == {"normalize": "b+c%20=d#1.pkl", "algo": ""}
    assert address.uri("x/a.zip") == "sb3:x/a.zip?normalize=b+c%20=d#1.pkl&algo"


def test_an_option_given_twice_is_refused():
    with pytest.raises(PolicyError, match="is given twice"):
        load_policy("onnx:model.onnx?output=a&output=b", CART)


# schemes of other packages


@pytest.fixture
def installed(monkeypatch):
    """Makes packages with entry points appear as installed."""

    def install(**points):
        found = EntryPoints(EntryPoint(name, value, uris.GROUP) for name, value in points.items())
        monkeypatch.setattr(uris, "entry_points", lambda **wanted: found.select(**wanted))

    return install


class Still:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows), np.int64)


def load_still(rest, given, trust):
    return LoadedPolicy(Still, f"still {rest} {trust}", f"still:{rest}", "0" * 64)


def load_nothing(rest, given, trust):
    return None


def load_badly(rest, given, trust):
    raise KeyError(rest)


@pytest.fixture
def package(monkeypatch):
    monkeypatch.setitem(sys.modules, "still_package", sys.modules[load_still.__module__])


@pytest.mark.usefixtures("package")
def test_a_package_brings_its_own_scheme(installed):
    installed(still="still_package:load_still")
    assert load_policy("still:a:b", CART, trust=True).name == "still a:b True"
    assert "still" in schemes()
    with pytest.raises(UsageError, match="did you mean 'still'"):
        load_policy("stil:a", CART)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("load_nothing", PolicyError, "returned NoneType, expected LoadedPolicy"),
        ("load_badly", TargetCodeError, "policy scheme still: .* raised KeyError"),
        ("load_none", TargetCodeError, "policy scheme still: .* raised AttributeError"),
    ],
)
def test_a_package_that_breaks_is_blamed(installed, function, error, message):
    installed(still=f"still_package:{function}")
    with pytest.raises(error, match=message):
        load_policy("still:a", CART)
