"""Targets run alike in an interpreter that has nothing but their shipment, when their files are gone."""

import importlib
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from policyfuzz import as_target, load_target
from policyfuzz.core.code_files import load_file
from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Runner
from policyfuzz.execution.shipping import _adopt_paths, decode_content, encode_content, pack, unpack

kinds = load_file(Path(__file__).parent / "shipped_kinds.py", "test")

#: Name of a target and its policy, from the folder that the files are in.
NAMED = {
    "ripple": ("ripple:probability=0.2", None),
    "family and function": ("gym:CartPole-v1:horizon=60", "py:controller.py:act"),
    "lock of a module": ("gym:CartPole-v1:horizon=60", "py:controller.py:locked"),
    "import inside a function": ("gym:CartPole-v1:horizon=60", "py:controller.py:imports_late"),
    "seed and npz": ("gym:CartPole-v1:horizon=60,input=seed", "npz:network.npz"),
    "class that raises": ("gym:cart.py:Cart:horizon=60,oracle=terminated", "py:controller.py:Weights"),
    "registered by a file": ("gym:cart.py:ShippedCart-v0:oracle=terminated", "py:controller.py:Counts"),
    "in a package": ("gym:shipped_package.cars:Van:horizon=60,oracle=terminated", "py:controller.py:act"),
    "wrapped": ("gym:CartPole-v1:horizon=60,wrap=cart.py:Heavy", "py:controller.py:act"),
    "python start": ("gym:CartPole-v1:horizon=60,input=push.py", "py:controller.py:act"),
    "bounds from a file": ("gym:CartPole-v1:horizon=60,input=bounds.toml", "py:controller.py:act"),
    "options of reset": ("gym:slide.py:Slide:horizon=20,oracle=terminated", "py:controller.py:cautious"),
    "target of a file": ("pond.py:make", None),
}
LIVE = ("class", "function that makes one", "object", "registered by the program", "plain function")


@pytest.fixture(scope="module")
def executions(tmp_path_factory):
    """Executions of all kinds, here and elsewhere; one fresh interpreter for all."""
    folder = tmp_path_factory.mktemp("shipment")
    (folder / "files").mkdir()
    kinds.write_files(folder / "files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder / "files"), *sys.path])
        patch.chdir(folder / "files")
        targets = {name: load_target(*words) for name, words in NAMED.items()} | live_targets(patch)
        patch.chdir(folder)
        return kinds.here_and_elsewhere(folder, targets)


def live_targets(patch):
    module = importlib.import_module("shipped_package.cars")
    patch.setitem(gymnasium.registry, "Van-v7", gymnasium.envs.registration.EnvSpec("Van-v7", module.Van))
    gain = 0.3

    def act(observation):
        return int(observation[2] + gain * observation[3] > 0)

    things = (
        module.Van,
        lambda: module.Van(),
        gymnasium.make("CartPole-v1"),
        lambda: gymnasium.make("Van-v7"),
    )
    live = [as_target(thing, act, oracle="terminated", horizon=60) for thing in things]
    pond = as_target(load_target("ripple:probability=0.2"), lambda offsets: np.sign(offsets) * 0.3)
    return dict(zip(LIVE, [*live, pond], strict=True))


@pytest.mark.parametrize("kind", [*NAMED, *LIVE])
def test_executions_elsewhere_are_the_same(executions, kind):
    kinds.assert_same(executions[kind])


def test_errors_show_lines_of_a_file_that_is_gone(executions):
    _, elsewhere = executions["class that raises"]
    assert elsewhere.errors
    for error in elsewhere.errors.values():
        assert 'raise RuntimeError("the wheels came off")' in error.text


def test_things_of_a_script_go_along_by_value(tmp_path):
    (tmp_path / "files").mkdir()
    script = tmp_path / "files" / "script.py"
    script.write_text(SCRIPT)
    subprocess.run([sys.executable, script], cwd=tmp_path, check=True, timeout=120)
    given, here = pickle.loads((tmp_path / "here").read_bytes())
    data = (tmp_path / "data").read_bytes()
    script.unlink()
    elsewhere = kinds.run_elsewhere(tmp_path, {"script": (data, given)})
    kinds.assert_same((here, elsewhere["script"]))


SCRIPT = """
import pickle
import gymnasium
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
import policyfuzz
from policyfuzz.execution.shipping import pack


class Tall(CartPoleEnv):
    def __init__(self, length=1.5, **rest):
        super().__init__(**rest)
        self.length = length


def act(observation):
    return int(observation[2] + 0.2 * observation[3] > 0)


if __name__ == "__main__":
    gymnasium.register("Tall-v0", entry_point=Tall, max_episode_steps=50)
    target = policyfuzz.as_target("gym:Tall-v0:oracle=terminated,input=seed", act)
    inputs = target.inputs.sample(np.random.default_rng(0), 8)
    given = inputs, np.arange(8, dtype=np.uint64)
    with open("data", "wb") as file:
        file.write(pack(target))
    with open("here", "wb") as file:
        pickle.dump((given, policyfuzz.Runner(target)(*given)), file)
"""


def test_a_shipment_has_nothing_of_the_coordinator_alone():
    acasxu = load_target("acasxu")
    assert acasxu.solvable is not None
    assert acasxu.draw is not None
    bare = replace(acasxu, solvable=None, draw=None)
    assert pack(acasxu) == pack(bare)


def test_shipment_that_was_changed_on_its_way_is_refused():
    data = bytearray(pack(load_target("ripple")))
    data[len(data) // 2] ^= 1
    with pytest.raises(UsageError, match="did not arrive whole"):
        unpack(bytes(data))


@pytest.mark.parametrize("what", ["Python", "policyfuzz", "numpy"])
def test_another_version_is_told_with_both(what):
    content = decode_content(pack(load_target("ripple")))
    here = content["versions"][what]
    content["versions"][what] = "0.0.7"
    with pytest.raises(UsageError, match=rf"{what} 0\.0\.7 there and {here} here"):
        unpack(encode_content(content))


class Locked:
    """A policy that cannot leave its process."""

    def __init__(self):
        self.weights = {"first": [1.0], "second": threading.Lock()}

    def begin(self, count): ...

    def act(self, observations, rows):
        return observations


def test_what_cannot_be_packed_is_named():
    target = as_target(load_target("ripple"), Locked())
    with pytest.raises(UsageError, match=r"policy > .*weights > second is a lock: .*cannot pickle") as caught:
        pack(target)
    assert "FILE.py:function" in caught.value.hint


def test_a_policy_of_a_class_needs_no_copy():
    assert pack(as_target(load_target("ripple"), Locked))


def test_an_environment_that_holds_a_file_is_named(tmp_path):
    with (tmp_path / "log").open("w") as log:

        def make():
            log.write("made")
            return gymnasium.make("CartPole-v1")

        target = as_target(make, lambda observation: 0, oracle="terminated")
        with pytest.raises(UsageError, match=r"simulator > make_env > make > log is a TextIOWrapper"):
            pack(target)


def test_unpacking_without_a_needed_package_says_so(tmp_path):
    code = "import sys; from policyfuzz.execution.shipping import unpack; unpack(sys.stdin.buffer.read())"
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "needy.py").write_text(NEEDY)
    (tmp_path / "files" / "rare_package.py").write_text("class Rare: ...\n")
    target = load_target(f"{tmp_path / 'files' / 'needy.py'}:make")
    content = decode_content(pack(target))
    content["modules"] = [one for one in content["modules"] if one[0] != "rare_package"]
    (tmp_path / "files" / "rare_package.py").unlink()
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=encode_content(content),
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    said = done.stderr.decode()
    assert "UsageError: the target cannot be unpacked" in said
    assert "No module named 'rare_package'" in said
    assert "every machine needs the packages" in said


NEEDY = """
from dataclasses import replace
from policyfuzz import load_target
from rare_package import Rare


def make():
    target = load_target("ripple")
    return replace(target, policy=lambda rare=Rare(): target.policy())
"""


def test_an_overwritten_model_does_not_reach_workers(tmp_path):
    np.savez(tmp_path / "p.npz", W0=np.eye(4)[:, :2], b0=np.zeros(2))
    target = load_target("gym:CartPole-v1:horizon=30", f"npz:{tmp_path / 'p.npz'}")
    data, given = pack(target), kinds.cases(target)
    here = Runner(target)(*given)
    np.savez(tmp_path / "p.npz", W0=-np.eye(4)[:, :2], b0=np.ones(2))
    elsewhere = kinds.run_elsewhere(tmp_path, {"npz": (data, given)})
    kinds.assert_same((here, elsewhere["npz"]))


def changing(tmp_path, monkeypatch, text):
    """A module of `text` that is imported, and a target that needs it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "changing_policy", raising=False)
    file = tmp_path / "changing_policy.py"
    file.write_text(text)
    module = importlib.import_module("changing_policy")
    monkeypatch.delitem(sys.modules, "changing_policy")  # so that it is taken out of there afterwards
    monkeypatch.setitem(sys.modules, "changing_policy", module)
    return file, as_target(load_target("ripple"), module.flee)


FLEE = "def flee(offsets):\n    return {} * offsets\n"


@pytest.mark.parametrize("text", [FLEE.format(0.5), "def flee(", None])
def test_a_module_that_changed_since_its_import_is_not_run_as_it_is_now(tmp_path, monkeypatch, text):
    file, target = changing(tmp_path, monkeypatch, FLEE.format(0.25))
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    with pytest.raises(AssertionError, match=r"changing_policy\.py has changed since it was imported"):
        kinds.run_elsewhere(tmp_path, {"changed": (pack(target), kinds.cases(target))})


def test_a_module_that_changed_and_is_not_needed_does_no_harm(tmp_path, monkeypatch):
    file, _ = changing(tmp_path, monkeypatch, FLEE.format(0.25))
    file.write_text(FLEE.format(0.5))
    target = load_target("ripple")
    given = kinds.cases(target)
    elsewhere = kinds.run_elsewhere(tmp_path, {"ripple": (pack(target), given)})
    kinds.assert_same((Runner(target)(*given), elsewhere["ripple"]))


def test_a_module_that_changes_after_packing_runs_as_it_was(tmp_path, monkeypatch):
    file, target = changing(tmp_path, monkeypatch, FLEE.format(0.25))
    data, given = pack(target), kinds.cases(target)
    file.write_text(FLEE.format(-1.0))
    elsewhere = kinds.run_elsewhere(tmp_path, {"changed": (data, given)})
    kinds.assert_same((Runner(target)(*given), elsewhere["changed"]))


@pytest.mark.parametrize("is_same_python", [True, False])
def test_folders_that_came_last_come_last_in_workers_too(tmp_path, monkeypatch, is_same_python):
    mine, its, packages = tmp_path / "mine", tmp_path / "its", tmp_path / "site-packages"
    for folder in (mine, its, packages):
        folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(its)])
    _adopt_paths(str(mine), [str(packages), str(mine), "/no/such/folder"], is_same_python)
    assert Path.cwd() == mine
    shared = [str(packages), str(mine)]
    assert sys.path == ([*shared, str(its)] if is_same_python else [str(its), *shared])
