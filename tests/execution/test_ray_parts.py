"""Parts of the executor ray, without a cluster."""

import socket
import subprocess
import sys
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from policyfuzz import load_target
from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Runner
from policyfuzz.execution.ray import cluster as cluster_module
from policyfuzz.execution.ray.cluster import Cluster
from policyfuzz.execution.ray.node import Kill, NodeActor, Send, Start
from policyfuzz.execution.ray.ray_pool import check_address
from policyfuzz.execution.shipping import pack
from policyfuzz.execution.worker_pool import ChunkResult, WorkerLost, WorkerReady

INPUTS, SEEDS = np.zeros((3, 2)), np.arange(3, dtype=np.uint64)


@pytest.mark.parametrize("address", ["ray://host:10001", "host", ":6379", "host:port"])
def test_address_that_is_none_is_refused(address):
    with pytest.raises(UsageError, match="expected HOST:PORT or auto"):
        check_address(address)


def test_address_where_nobody_answers_is_told_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UsageError, match="ray start --head"):
        check_address(f"127.0.0.1:{port}")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="the executor ray needs the extra [ray]")
def test_example_of_a_launcher_file_is_one_to_ray():
    # Ray stays out of this process, as it does in campaigns
    check = """
import sys, yaml
from ray.autoscaler._private.util import prepare_config, validate_config
validate_config(prepare_config(yaml.safe_load(open(sys.argv[1]))))
"""
    file = Path(__file__).parents[2] / "docs" / "cluster.yaml"
    process = subprocess.run([sys.executable, "-c", check, file], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


@pytest.mark.slow
def test_node_executes_commands_by_their_numbers():
    target = load_target("ripple:dimensions=2")
    node = NodeActor(pack(target))
    first, second = np.full((1, 2), 0.25), np.full((2, 2), 0.5)
    node.execute(1, [Send(7, (first, SEEDS[:1])), Send(7, (second, SEEDS[:2])), Send(8, (first, SEEDS[:1]))])
    node.execute(0, [Start(7)])
    messages = []
    while len(messages) < 3:
        messages += node.receive(30)
    assert isinstance(messages[0], WorkerReady)
    results = [one.result for one in messages if isinstance(one, ChunkResult)]
    assert [len(one.returns) for one in results] == [1, 2]
    np.testing.assert_array_equal(results[1].returns, Runner(target)(second, SEEDS[:2]).returns)
    node.execute(2, [Kill(7)])
    assert [type(one) for one in node.receive(30)] == [WorkerLost]
    node.execute(3, [Send(7, (first, SEEDS[:1])), Kill(7)])  # nobody there to take it
    assert node.receive(0) == []


class FakeRay:
    """As much of Ray as a cluster uses: nodes, slots on the first of them, actors that never answer."""

    def __init__(self):
        self.node_ids = ["one"]
        self.slots = {}
        self.actors = []
        self.time = 0.0
        self.messages = []
        self.replies = []

    def load(self, module, extra):
        return {
            "ray": SimpleNamespace(
                put=lambda thing: thing, remote=lambda kind: self, kill=lambda actor: None, nodes=self.nodes
            ),
            "ray.util": SimpleNamespace(
                placement_group=self.slot,
                placement_group_table=self.table,
                remove_placement_group=lambda slot: self.slots.pop(slot.name),
            ),
            "ray.util.scheduling_strategies": SimpleNamespace(
                NodeAffinitySchedulingStrategy=lambda node, soft: node
            ),
        }[module]

    def nodes(self):
        return [
            {"NodeID": one, "NodeManagerHostname": f"host {one}", "NodeManagerAddress": "10.0.0.1"}
            for one in self.node_ids
        ]

    def slot(self, bundles):
        name = f"slot {len(self.slots)} {self.time}"
        self.slots[name] = bundles
        return SimpleNamespace(name=name, id=SimpleNamespace(hex=lambda: name))

    def table(self):
        if not self.node_ids:
            return {name: {"state": "PENDING"} for name in self.slots}
        place = {0: self.node_ids[0]}
        return {name: {"state": "CREATED", "bundles_to_node_id": place} for name in self.slots}

    def options(self, scheduling_strategy, **rest):
        return SimpleNamespace(remote=lambda shipment: self.actor(scheduling_strategy))

    def actor(self, node):
        actor = SimpleNamespace(node=node, commands=[], answers=[])
        actor.execute = SimpleNamespace(remote=lambda number, commands: actor.commands.extend(commands))
        actor.receive = SimpleNamespace(
            remote=lambda seconds: SimpleNamespace(future=lambda: self.ask(actor))
        )
        self.actors.append(actor)
        return actor

    def ask(self, actor):
        actor.answers.append(Future())
        return actor.answers[-1]


@pytest.fixture
def fake(monkeypatch):
    fake = FakeRay()
    monkeypatch.setattr(cluster_module, "load", fake.load)
    fake.cluster = Cluster(b"shipment", fake.messages.extend, fake.replies.append, lambda: fake.time)
    return fake


def later(fake, seconds):
    """Let time go by, with all that comes of it."""
    fake.time += seconds
    while fake.replies:
        fake.cluster.handle_reply(fake.replies.pop())
    fake.cluster.advance()


def test_workers_of_a_node_have_one_actor(fake):
    for worker in range(3):
        fake.cluster.add_command(Start(worker))
    later(fake, 0)
    assert [actor.commands for actor in fake.actors] == [[Start(0), Start(1), Start(2)]]
    assert len(fake.slots) == 3


def test_worker_waits_until_there_is_a_node_with_room(fake):
    fake.node_ids.clear()
    fake.cluster.add_command(Start(0))
    later(fake, 1000)
    assert (fake.actors, fake.messages) == ([], [])
    fake.node_ids.append("new")
    later(fake, 10)
    assert fake.actors[0].commands == [Start(0)]


def test_worker_that_waits_can_be_killed(fake):
    fake.node_ids.clear()
    fake.cluster.add_command(Start(0))
    fake.cluster.add_command(Kill(0))
    assert [one.worker for one in fake.messages] == [0]
    assert fake.slots == {}


def test_lost_worker_gives_its_slot_back(fake):
    fake.cluster.add_command(Start(0))
    later(fake, 0)
    fake.actors[0].answers[-1].set_result([WorkerLost(0, "segfault")])
    later(fake, 0)
    assert fake.messages == [WorkerLost(0, "segfault")]
    assert fake.slots == {}


def test_silent_node_loses_its_workers_as_a_node_failure(fake):
    fake.cluster.add_command(Start(0))
    later(fake, 0)
    fake.actors[0].answers[-1].set_result([])
    later(fake, 1)
    later(fake, 30)
    assert fake.messages == []
    later(fake, 10)
    assert [(one.worker, one.is_node_failure) for one in fake.messages] == [(0, True)]
    assert "host one" in fake.messages[0].text


def test_node_gets_another_actor_after_a_while_but_not_for_ever(fake):
    for worker in range(3):
        fake.cluster.add_command(Start(worker))
        later(fake, 5)
        assert len(fake.actors) == worker or worker == 0, "the node may be gone, and is used at once"
        later(fake, 30)
        assert len(fake.actors) == worker + 1
        fake.actors[-1].answers[-1].set_exception(ConnectionError("socket closed"))
        later(fake, 0)
    fake.cluster.add_command(Start(3))
    later(fake, 100)
    assert [(one.worker, one.is_node_failure) for one in fake.messages] == [
        (0, True),
        (1, True),
        (2, True),
        (3, False),
    ]
    assert "socket closed" in fake.messages[-1].text


def test_actor_that_cannot_be_built_is_no_node_failure(fake):
    class InitFailed(Exception):
        actor_init_failed = True

    fake.cluster.add_command(Start(0))
    later(fake, 0)
    fake.actors[0].answers[-1].set_exception(InitFailed("No module named 'policyfuzz'"))
    later(fake, 0)
    assert not fake.messages[0].is_node_failure
    assert "is the same policyfuzz installed there?" in fake.messages[0].text


def test_commands_for_a_worker_that_is_gone_are_dropped(fake):
    fake.cluster.add_command(Send(5, (INPUTS, SEEDS)))
    fake.cluster.add_command(Kill(5))
    later(fake, 0)
    assert (fake.actors, fake.messages) == ([], [])
