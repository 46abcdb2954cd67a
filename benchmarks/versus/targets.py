"""The targets of the bench, and how many episodes each gets."""

import re
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyFuzzError, UsageError, unknown_name
from policyfuzz.core.target import Target, split_options
from policyfuzz.targets.registry import load_target
from policyfuzz.targets.ripple.target import Pond

#: Episodes for peers that are slow: the protocol of the package's own examples. Fewer where even these
#: would take hours, because the environment is slow or has a state of many numbers.
_SLOW_PEERS, _VERY_SLOW_PEERS = 5_000, 1_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A target that takes part."""

    label: str
    target: str
    episodes: int
    policy: str | None = None  #: URI, None for the target's own
    slow_peer_episodes: int = _SLOW_PEERS

    def with_episodes(self, episodes: int) -> "Entry":
        """The same with so many `episodes`, and no more for slow peers than they have anyway."""
        slow_peers = min(episodes, self.slow_peer_episodes)
        return replace(self, episodes=episodes, slow_peer_episodes=slow_peers)

    def load(self) -> Target:
        """The target itself."""
        return load_target(self.target, self.policy)


class NotHere(PolicyFuzzError):
    """A target needs a file that the user must supply."""


def _ripple(dimensions: int) -> Entry:
    name = f"ripple:dimensions={dimensions},regions=3,probability=0.0001"
    slow_peers = _SLOW_PEERS if dimensions < 10 else _VERY_SLOW_PEERS
    return Entry(f"ripple-{dimensions}", name, 20_000, slow_peer_episodes=slow_peers)


def _shipped(label: str, environment: str, episodes: int) -> Entry:
    policy = resources.files("policyfuzz.models").joinpath(label, "networks.npz")
    return Entry(label, f"gym:{environment}:bounds=wide", episodes, f"npz:{policy}", _VERY_SLOW_PEERS)


_PUBLIC = "acasxu-public"
ENTRIES = {
    entry.label: entry
    for entry in (
        Entry("acasxu", "acasxu", 20_000),
        Entry(_PUBLIC, "acasxu", 20_000, "acasxu:"),
        Entry("coopnavi", "coopnavi", 20_000),
        Entry("bipedal", "bipedal", 5_000, slow_peer_episodes=_VERY_SLOW_PEERS),
        _ripple(2),
        _ripple(10),
        _ripple(50),
        _shipped("cartpole", "CartPole-v1", 5_000),
        _shipped("lunarlander", "LunarLander-v3", 5_000),
    )
}


def find_entry(name: str) -> Entry:
    """The target called `name`: one of the bench, or any other, with its options behind a colon."""
    if name in ENTRIES:
        return ENTRIES[name]
    if ":" not in name:
        raise unknown_name("target of the bench", name, ENTRIES)
    return Entry(re.sub(r"[^\w.=-]+", "-", name).strip("-"), name, 5_000)


def choose(names: tuple[str, ...], public_networks: Path | None, episodes: int | None) -> list[Entry]:
    """The targets called `names`, all by default, with so many `episodes` if that is said."""
    entries = [find_entry(name) for name in names] if names else list(ENTRIES.values())
    if public_networks is not None:
        policy = f"acasxu:{public_networks.expanduser().resolve()}"
        entries = [replace(one, policy=policy) if one.label == _PUBLIC else one for one in entries]
    if episodes is None:
        return entries
    if episodes < 10:
        raise UsageError(f"episodes is {episodes}, expected 10 or more")
    return [one.with_episodes(episodes) for one in entries]


def load(entry: Entry) -> Target:
    """The target of `entry`; NotHere or MissingExtra where something is not there."""
    if entry.policy == "acasxu:":
        raise NotHere(f"{entry.label} needs the public networks", "say where they lie: --public-networks DIR")
    scheme, _, place = (entry.policy or "").partition(":")
    if scheme == "npz" and not Path(place).exists():
        raise NotHere(f"{entry.label} needs the file {place}, which is not there", "")
    return entry.load()


def regions_of(target: str, inputs: NDArray[np.float64]) -> tuple[int, NDArray[np.int64]]:
    """How many crash regions `target` is known to have, and (n,) the one nearest to each input, or -1."""
    base, options = split_options(target)
    if base != "ripple":
        return 0, np.full(len(inputs), -1, np.int64)
    regions = int(options.get("regions", 1))
    dimensions, probability = int(options.get("dimensions", 4)), float(options.get("probability", 1e-3))
    pond = Pond.make(dimensions, regions, probability)
    return regions, np.asarray(pond.nearest(inputs)[0], np.int64)
