"""What a user without a server, without the package, or with a slip in an option is told."""

import socket
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest

from policyfuzz import Runner
from policyfuzz.cli.main import exit_code
from policyfuzz.core.errors import MissingExtra, PolicyError, UsageError
from policyfuzz.policies.mlp import MlpBank, write_npz
from policyfuzz.targets.carla.server import ServerError, Settings, connect, parse_options, target_name
from policyfuzz.targets.carla.target import AUTOPILOT, find_driver, make_target
from policyfuzz.targets.registry import load_target

needs_carla = pytest.mark.skipif(find_spec("carla") is None, reason="needs the package carla")

ROAD = """<?xml version="1.0"?><OpenDRIVE>
<header revMajor="1" revMinor="4" name="" version="1" north="0" south="0" east="0" west="0"/>
<road name="" length="400" id="1" junction="-1"><link/>
<planView><geometry s="0" x="0" y="0" hdg="0" length="400"><line/></geometry></planView>
<lanes><laneSection s="0"><center><lane id="0" type="none" level="false"/></center>
<right><lane id="-1" type="driving" level="false"><width sOffset="0" a="3.5" b="0" c="0" d="0"/></lane>
</right></laneSection></lanes></road></OpenDRIVE>"""


@pytest.fixture
def road(tmp_path):
    path = tmp_path / "road.xodr"
    path.write_text(ROAD)
    return path


@pytest.fixture
def nobody():
    """A port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def mute():
    """The port of somebody who takes calls and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def assert_helpful(text, port):
    assert f"127.0.0.1:{port}" in text
    assert "within 1 s" in text
    assert f"./CarlaUE4.sh -RenderOffScreen -carla-rpc-port={port}" in text


@needs_carla
@pytest.mark.parametrize("listener", ["nobody", "mute"])
def test_a_server_that_does_not_answer_is_an_error_after_the_timeout(request, listener):
    port = request.getfixturevalue(listener)
    with pytest.raises(ServerError) as caught:
        connect(Settings(host="127.0.0.1", port=port, timeout_seconds=1.0))
    assert_helpful(str(caught.value), port)
    assert caught.value.exit_code == 3


@needs_carla
def test_a_target_without_map_asks_the_server_at_once(nobody):
    with pytest.raises(ServerError, match=f"127.0.0.1:{nobody}"):
        make_target({"host": "127.0.0.1", "port": str(nobody), "timeout": "1"}, AUTOPILOT)


@needs_carla
def test_a_target_with_map_needs_no_server_until_the_first_episode(nobody, road):
    options = {"host": "127.0.0.1", "port": str(nobody), "timeout": "1", "map": str(road), "vehicles": "3"}
    target = make_target(options, AUTOPILOT)
    inputs = target.inputs.sample(np.random.default_rng(0), 5)
    assert target.inputs.is_valid(inputs).any()
    runner = Runner(target)
    with pytest.raises(ServerError) as caught:
        runner(inputs[:1], np.zeros(1, np.uint64))
    assert_helpful(str(caught.value), nobody)


@needs_carla
def test_check_says_how_to_start_a_server(nobody, road, capsys):
    name = f"carla:host=127.0.0.1,port={nobody},timeout=1,map={road},vehicles=3"
    assert exit_code(["check", name, "--policy", AUTOPILOT]) == 3
    assert_helpful(capsys.readouterr().err, nobody)


@needs_carla
def test_the_name_of_a_target_rebuilds_it(road, monkeypatch):
    monkeypatch.chdir(road.parent)
    target = load_target("carla:map=road.xodr,vehicles=2,horizon=7", AUTOPILOT)
    monkeypatch.chdir("/")
    again = load_target(target.name, target.policy_uri)
    assert (again.name, again.horizon, again.inputs.names) == (target.name, 7, target.inputs.names)
    assert again.inputs.names[:5] == ("ego_x", "ego_y", "ego_yaw", "turn", "car1_x")


def test_without_the_package_the_extra_is_named(monkeypatch, road):
    monkeypatch.setitem(sys.modules, "carla", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[carla\]"):
        make_target({"map": str(road)}, AUTOPILOT)
    with pytest.raises(MissingExtra, match=r"pip install .*\[carla\]"):
        make_target({}, AUTOPILOT)


def test_importing_the_target_does_not_import_the_package():
    code = "import policyfuzz.targets.carla.target, sys; print('carla' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"port": "0"}, "port is '0'"),
        ({"port": "two"}, "port is 'two', expected a whole number from 1"),
        ({"traffic_port": "70000"}, "traffic_port"),
        ({"timeout": "0"}, "timeout is '0', expected a number"),
        ({"timeout": "nan"}, "timeout is 'nan'"),
        ({"vehicles": "-1"}, "vehicles"),
        ({"horizon": "0"}, "horizon"),
        ({"camera": "big"}, "WIDTHxHEIGHT"),
        ({"camera": "385x160"}, "both even"),
        ({"reload": "maybe"}, "expected yes or no"),
        ({"map": "no/such.xodr"}, "no map file"),
    ],
)
def test_a_slip_in_an_option_is_told(options, message):
    with pytest.raises(UsageError, match=message):
        parse_options(options)


def test_options_are_understood(road):
    text = {"host": "far", "port": "2010", "traffic_port": "8010", "timeout": "2.5", "town": "Town05"}
    more = {"map": str(road), "vehicles": "100", "horizon": "200", "camera": "384x160", "reload": "no"}
    assert parse_options(text | more) == Settings(
        "far", 2010, 8010, 2.5, "Town05", road.resolve(), 100, 200, (384, 160), False
    )


def test_a_plain_target_has_a_plain_name():
    assert parse_options({}) == Settings()
    assert target_name({}) == "carla"


@needs_carla
def test_a_map_file_that_holds_no_map_is_named(tmp_path):
    file = tmp_path / "photo.xodr"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"photo\.xodr"):
        make_target({"map": str(file)}, AUTOPILOT)
    file.write_text("<OpenDRIVE>")
    with pytest.raises(UsageError, match=r"photo\.xodr"):
        make_target({"map": str(file)}, AUTOPILOT)


def test_without_a_policy_all_ways_to_give_one_are_told():
    with pytest.raises(PolicyError, match="carla has no default policy") as caught:
        find_driver(None)
    for way in ("py:MODULE:FUNCTION", "carla:FILE.npz", AUTOPILOT):
        assert way in caught.value.hint


@pytest.mark.parametrize("uri", ["sb3:model.zip", "py:module", "py:", "autopilot"])
def test_a_policy_of_another_kind_is_refused(uri):
    with pytest.raises(PolicyError, match="carla cannot use policy"):
        find_driver(uri)


def network(sizes, rng):
    count = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
    return MlpBank.from_parameters(rng.normal(size=(1, count)), sizes)


def test_a_network_acts_on_the_state_with_and_without_pictures(tmp_path):
    bank = network((17, 8, 3), np.random.default_rng(0))
    write_npz(tmp_path / "driver.npz", bank)
    driver = find_driver(f"carla:{tmp_path / 'driver.npz'}")
    policy = driver.make()
    policy.begin(1)
    states = np.random.default_rng(1).normal(size=(1, 17))
    seen = np.zeros(1, [("state", float, (17,)), ("picture", np.uint8, (2, 2, 3))])
    seen["state"] = states
    actions = policy.act(states, np.zeros(1, np.int64))
    assert actions.shape == (1, 3)
    np.testing.assert_array_equal(policy.act(seen, np.zeros(1, np.int64)), actions)
    assert len(driver.sha256) == 64


def test_a_network_of_another_shape_is_refused(tmp_path):
    write_npz(tmp_path / "driver.npz", network((16, 3), np.random.default_rng(0)))
    with pytest.raises(PolicyError, match="from 16 to 3 numbers, expected 1 from 17 to 3"):
        find_driver(f"carla:{tmp_path / 'driver.npz'}")


def test_a_missing_network_is_named(tmp_path):
    with pytest.raises(PolicyError, match=r"none\.npz"):
        find_driver(f"carla:{tmp_path / 'none.npz'}")


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Writes the user's module `my_driver` and makes it importable."""

    def write(text):
        (tmp_path / "my_driver.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "my_driver", raising=False)

    yield write
    sys.modules.pop("my_driver", None)


OWN = """
import numpy as np

class Straight:
    def begin(self, count): pass
    def act(self, observations, rows): return np.tile([0.5, 0.0, 0.0], (len(rows), 1))

def make(): return Straight()
def wrong(): return 3
"""


def test_own_code_makes_the_policy(own_module):
    own_module(OWN)
    driver = find_driver("py:my_driver:make")
    np.testing.assert_array_equal(
        driver.make().act(np.zeros((1, 17)), np.zeros(1, np.int64)), [[0.5, 0.0, 0.0]]
    )
    assert driver.uri == "py:my_driver:make"


def test_own_code_may_be_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "drives.py").write_text(OWN)
    driver = find_driver(f"py:{tmp_path / 'drives.py'}:make")
    np.testing.assert_array_equal(
        driver.make().act(np.zeros((1, 17)), np.zeros(1, np.int64)), [[0.5, 0.0, 0.0]]
    )


def test_own_code_that_changed_has_another_digest(own_module):
    own_module(OWN)
    before = find_driver("py:my_driver:make").sha256
    own_module(OWN.replace("0.5", "0.6"))
    assert find_driver("py:my_driver:make").sha256 != before


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("py:my_driver:none", "module 'my_driver' has no 'none'"),
        ("py:my_missing_driver:make", "No module named 'my_missing_driver'"),
    ],
)
def test_own_code_that_cannot_be_found_is_told(own_module, uri, message):
    own_module(OWN)
    with pytest.raises(PolicyError, match=message):
        find_driver(uri)


def test_own_code_that_breaks_is_told(own_module):
    own_module("1 / 0")
    with pytest.raises(PolicyError, match="ZeroDivisionError"):
        find_driver("py:my_driver:make")


def test_own_code_must_return_a_policy(own_module):
    own_module(OWN)
    with pytest.raises(PolicyError, match=r"returned int, expected an object with begin"):
        find_driver("py:my_driver:wrong").make()
