"""Places for workers: one core each, reserved in the cluster as everybody's are."""

from typing import Any

from policyfuzz.extras import load


class Seats:
    """Asks the cluster for a core per worker, and keeps it for as long as the worker is there.

    A seat is a placement group of one core. So the scheduler of Ray decides who sits where and who has to
    wait, other users of the cluster see honest numbers, an autoscaler knows what is wanted, and the seat of
    a worker that waits moves on by itself when the machine it was to be on goes.
    """

    def __init__(self) -> None:
        self._ray = load("ray.util", "ray")
        self._groups: dict[int, Any] = {}  #: of all workers
        self._waiting: dict[str, int] = {}  #: placement group to worker, of those that do not sit yet

    @property
    def are_awaited(self) -> bool:
        """True where somebody waits for a seat."""
        return bool(self._waiting)

    def is_awaited_by(self, worker: int) -> bool:
        """True where `worker` waits for a seat."""
        return worker in self._waiting.values()

    def ask(self, worker: int) -> None:
        """Ask for a seat for `worker`."""
        group = self._ray.placement_group([{"CPU": 1}])
        self._groups[worker] = group
        self._waiting[group.id.hex()] = worker

    def granted(self) -> dict[int, str]:
        """Workers that wait and may be seated, and the machine that each would be on."""
        table = self._ray.placement_group_table()
        return {
            worker: table[group]["bundles_to_node_id"][0]
            for group, worker in self._waiting.items()
            if table.get(group, {}).get("state") == "CREATED"
        }

    def take(self, worker: int) -> None:
        """`worker` is where its seat is, and waits no more."""
        self._waiting.pop(self._groups[worker].id.hex())

    def give_back(self, worker: int) -> None:
        """`worker` needs its seat no more."""
        group = self._groups.pop(worker, None)
        if group is not None:
            self._waiting.pop(group.id.hex(), None)
            self._ray.remove_placement_group(group)
