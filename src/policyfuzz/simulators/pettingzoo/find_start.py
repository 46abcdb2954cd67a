"""Finds out how a parallel environment can be started from an input."""

from typing import Any

from policyfuzz.simulators.gym.changed_start import changed
from policyfuzz.simulators.gym.find_start import find_start
from policyfuzz.simulators.gym.input_changes import InputChanges
from policyfuzz.simulators.gym.start import Start
from policyfuzz.simulators.pettingzoo.world_start import find_world_start


def find_parallel_start(env: Any, changes: InputChanges) -> Start:
    """How to start `env`: particle worlds by their positions, all others as Gymnasium environments are."""
    base = env.unwrapped
    is_by_state = changes.python_file is None and changes.way in (None, "state")
    world = find_world_start(base) if is_by_state else None
    return find_start(base, changes) if world is None else changed(world, changes.of_dimensions)
