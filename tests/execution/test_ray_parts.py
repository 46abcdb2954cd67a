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
from policyfuzz.execution.pool import Answer, Lost, Ready
from policyfuzz.execution.ray import fleet as fleet_module
from policyfuzz.execution.ray import fleet as seats_module
from policyfuzz.execution.ray.cluster import checked_address
from policyfuzz.execution.ray.fleet import Fleet
from policyfuzz.execution.ray.node import Kill, Send, Start, Station
from policyfuzz.execution.shipping import pack

INPUTS, SEEDS = np.zeros((3, 2)), np.arange(3, dtype=np.uint64)


@pytest.mark.parametrize("address", ["ray://host:10001", "host", ":6379", "host:port"])
def test_address_that_is_none_is_refused(address):
    with pytest.raises(UsageError, match="expected HOST:PORT or auto"):
        checked_address(address)


def test_address_where_nobody_answers_is_told_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UsageError, match="ray start --head"):
        checked_address(f"127.0.0.1:{port}")


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
def test_station_carries_out_orders_by_their_numbers():
    target = load_target("ripple:dimensions=2")
    station = Station(pack(target))
    first, second = np.full((1, 2), 0.25), np.full((2, 2), 0.5)
    station.obey(1, [Send(7, first, SEEDS[:1]), Send(7, second, SEEDS[:2]), Send(8, first, SEEDS[:1])])
    station.obey(0, [Start(7)])
    heard = []
    while len(heard) < 3:
        heard += station.listen(30)
    assert isinstance(heard[0], Ready)
    assert [len(one.result) for one in heard if isinstance(one, Answer)] == [1, 2]
    np.testing.assert_array_equal(heard[2].result.returns, Runner(target)(second, SEEDS[:2]).returns)
    station.obey(2, [Kill(7)])
    assert [type(one) for one in station.listen(30)] == [Lost]
    station.obey(3, [Send(7, first, SEEDS[:1]), Kill(7)])  # nobody there to take it
    assert station.listen(0) == []


class FakeCluster:
    """As much of Ray as a fleet uses: machines, seats on the first of them, actors that never answer."""

    def __init__(self):
        self.machines = ["one"]
        self.seats = {}
        self.actors = []
        self.time = 0.0
        self.told = []
        self.heard = []

    def load(self, module, extra):
        return {
            "ray": SimpleNamespace(
                put=lambda thing: thing, remote=lambda kind: self, kill=lambda actor: None, nodes=self.nodes
            ),
            "ray.util": SimpleNamespace(
                placement_group=self.seat,
                placement_group_table=self.table,
                remove_placement_group=lambda seat: self.seats.pop(seat.name),
            ),
            "ray.util.scheduling_strategies": SimpleNamespace(
                NodeAffinitySchedulingStrategy=lambda node, soft: node
            ),
        }[module]

    def nodes(self):
        return [
            {"NodeID": one, "NodeManagerHostname": f"host {one}", "NodeManagerAddress": "10.0.0.1"}
            for one in self.machines
        ]

    def seat(self, bundles):
        name = f"seat {len(self.seats)} {self.time}"
        self.seats[name] = bundles
        return SimpleNamespace(name=name, id=SimpleNamespace(hex=lambda: name))

    def table(self):
        if not self.machines:
            return {name: {"state": "PENDING"} for name in self.seats}
        place = {0: self.machines[0]}
        return {name: {"state": "CREATED", "bundles_to_node_id": place} for name in self.seats}

    def options(self, scheduling_strategy, **rest):
        return SimpleNamespace(remote=lambda shipment: self.actor(scheduling_strategy))

    def actor(self, node):
        actor = SimpleNamespace(node=node, orders=[], answers=[])
        actor.obey = SimpleNamespace(remote=lambda number, orders: actor.orders.extend(orders))
        actor.listen = SimpleNamespace(remote=lambda seconds: SimpleNamespace(future=lambda: self.ask(actor)))
        self.actors.append(actor)
        return actor

    def ask(self, actor):
        actor.answers.append(Future())
        return actor.answers[-1]


@pytest.fixture
def fake(monkeypatch):
    fake = FakeCluster()
    for module in (fleet_module, seats_module):
        monkeypatch.setattr(module, "load", fake.load)
    fake.fleet = Fleet(b"shipment", fake.told.extend, fake.heard.append, lambda: fake.time)
    return fake


def later(fake, seconds):
    """Let time go by, with all that comes of it."""
    fake.time += seconds
    while fake.heard:
        fake.fleet.handle(fake.heard.pop())
    fake.fleet.advance()


def test_workers_of_a_machine_have_one_station(fake):
    for worker in range(3):
        fake.fleet.order(Start(worker))
    later(fake, 0)
    assert [actor.orders for actor in fake.actors] == [[Start(0), Start(1), Start(2)]]
    assert len(fake.seats) == 3


def test_worker_waits_until_there_is_a_machine_with_room(fake):
    fake.machines.clear()
    fake.fleet.order(Start(0))
    later(fake, 1000)
    assert (fake.actors, fake.told) == ([], [])
    fake.machines.append("new")
    later(fake, 10)
    assert fake.actors[0].orders == [Start(0)]


def test_worker_that_waits_can_be_killed(fake):
    fake.machines.clear()
    fake.fleet.order(Start(0))
    fake.fleet.order(Kill(0))
    assert [one.worker for one in fake.told] == [0]
    assert fake.seats == {}


def test_lost_worker_gives_its_seat_back(fake):
    fake.fleet.order(Start(0))
    later(fake, 0)
    fake.actors[0].answers[-1].set_result([Lost(0, "segfault")])
    later(fake, 0)
    assert fake.told == [Lost(0, "segfault")]
    assert fake.seats == {}


def test_station_that_is_silent_has_lost_its_workers_without_blame(fake):
    fake.fleet.order(Start(0))
    later(fake, 0)
    fake.actors[0].answers[-1].set_result([])
    later(fake, 1)
    later(fake, 30)
    assert fake.told == []
    later(fake, 10)
    assert [(one.worker, one.is_blameless) for one in fake.told] == [(0, True)]
    assert "host one" in fake.told[0].text


def test_machine_gets_another_station_after_a_while_but_not_for_ever(fake):
    for worker in range(3):
        fake.fleet.order(Start(worker))
        later(fake, 5)
        assert len(fake.actors) == worker or worker == 0, "the machine may be gone, and is used at once"
        later(fake, 30)
        assert len(fake.actors) == worker + 1
        fake.actors[-1].answers[-1].set_exception(ConnectionError("socket closed"))
        later(fake, 0)
    fake.fleet.order(Start(3))
    later(fake, 100)
    assert [(one.worker, one.is_blameless) for one in fake.told] == [
        (0, True),
        (1, True),
        (2, True),
        (3, False),
    ]
    assert "socket closed" in fake.told[-1].text


def test_station_that_cannot_be_built_is_to_blame(fake):
    class InitFailed(Exception):
        actor_init_failed = True

    fake.fleet.order(Start(0))
    later(fake, 0)
    fake.actors[0].answers[-1].set_exception(InitFailed("No module named 'policyfuzz'"))
    later(fake, 0)
    assert not fake.told[0].is_blameless
    assert "is the same policyfuzz installed there?" in fake.told[0].text


def test_orders_for_a_worker_that_is_gone_are_dropped(fake):
    fake.fleet.order(Send(5, INPUTS, SEEDS))
    fake.fleet.order(Kill(5))
    later(fake, 0)
    assert (fake.actors, fake.told) == ([], [])
