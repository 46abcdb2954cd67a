"""One policy for all agents, made of one or more that each act for some of them."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.activations import Activations, activations_of
from policyfuzz.core.branches import RemembersActions
from policyfuzz.core.errors import PolicyError, UsageError, unknown_name
from policyfuzz.core.interfaces import Policy
from policyfuzz.core.target import IN_MEMORY
from policyfuzz.environments.nominal import RandomActions
from policyfuzz.environments.parallel import Agents
from policyfuzz.environments.spaces import ActionReader
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri import load_policy

#: WHO in front of a URI, whose own equals signs come after its scheme.
_WHO = re.compile(r"([^:=?]+)=(.+)", re.S)
#: What tells the members of a group apart: adversary_0, adversary_1.
_NUMBER = re.compile(r"[_-]?\d+$")


class JointPolicy:
    """Asks each policy once a step, for all episodes and all of its agents that are alive.

    For a policy of k agents, agent i of episode n is row k · n + i, so it can remember each of them.
    """

    def __init__(self, agents: Agents, parts: Sequence[tuple[Policy, tuple[int, ...]]]) -> None:
        """`parts` are policies, and the positions in `agents` of those that they act for."""
        self._agents = agents
        self._parts = [
            (policy, np.array(columns), ActionReader(agents.action_spaces[columns[0]]))
            for policy, columns in parts
        ]

    def begin(self, count: int) -> None:
        for policy, columns, _ in self._parts:
            policy.begin(count * len(columns))

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        actions = self._agents.empty_actions(len(rows))
        alive = actions["alive"] = observations["alive"] != 0
        seen, done = observations["agents"], [actions["agents"][name] for name in self._agents.names]
        for policy, columns, read in self._parts:
            acting = alive[:, columns]
            if not acting.any():
                continue
            views = np.stack([seen[self._agents.names[column]] for column in columns], axis=1)[acting]
            ids = (rows[:, None] * len(columns) + np.arange(len(columns)))[acting]
            chosen = read(policy.act(views, ids), len(ids))
            for episode, place, action in zip(
                *map(np.ndarray.tolist, np.nonzero(acting)), chosen, strict=True
            ):
                done[columns[place]][episode] = action
        return actions

    def activations(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> Activations:
        """Those of all agents, side by side as the policies have them; zeros for agents that are gone."""
        alive, seen = observations["alive"] != 0, observations["agents"]
        parts = []
        for policy, columns, _ in self._parts:
            names = [self._agents.names[column] for column in columns]
            views = np.stack([seen[name] for name in names], axis=1)
            ids = rows[:, None] * len(columns) + np.arange(len(columns))
            # also of those that are gone: nothing changes by it, and the widths are known
            found = activations_of(policy, views.reshape(-1, *views.shape[2:]), ids.ravel())
            values = found.values.reshape(len(rows), len(columns), -1)
            values = np.where(alive[:, columns][:, :, None], values, 0.0)
            parts.append(Activations.of_agents(names, values, found.layers))
        return Activations.side_by_side(parts)

    def executed(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> None:
        for policy, columns, _ in self._parts:
            if isinstance(policy, RemembersActions):
                acting = actions["alive"][:, columns]
                names = [self._agents.names[column] for column in columns]
                done = np.stack([actions["agents"][name] for name in names], axis=1)[acting]
                ids = (rows[:, None] * len(columns) + np.arange(len(columns)))[acting]
                policy.executed(done, ids)


@dataclass(frozen=True, slots=True)
class Share:
    """A policy, and the agents that it acts for."""

    who: str  #: as the user wrote it; empty for all that are not named
    columns: tuple[int, ...]  #: positions of its agents
    loaded: LoadedPolicy


def load_joint_policy(policy: Any, agents: Agents, trust: bool, reward: str) -> LoadedPolicy:
    """All policies that `policy` names or holds by agent, or the one that all agents share, as one policy.

    `reward` says how the rewards of the agents become one.
    """
    if policy is None or isinstance(policy, str):
        given: Mapping[str, Any] = _uris(policy, agents)
    elif isinstance(policy, Mapping):
        given = policy
        for who in filter(None, given):
            _check_agent(who, agents)
    else:
        given = {"": policy}
    shares = _shares(given, agents, trust)
    is_live = any(share.loaded.uri.startswith(f"{IN_MEMORY}:") for share in shares)
    parts = [(share.loaded, share.columns) for share in shares]
    named = [(share.who, share.loaded) for share in shares]
    is_single = len(shares) == 1
    digests = sorted(f"{who}={loaded.sha256}" for who, loaded in named)
    return LoadedPolicy(
        make=lambda: JointPolicy(agents, [(loaded.make(), columns) for loaded, columns in parts]),
        name=", ".join(f"{who}: {loaded.name}" if who else loaded.name for who, loaded in named),
        uri=f"{IN_MEMORY}:joint" if is_live else ";".join(map(_written, named)),
        sha256=named[0][1].sha256 if is_single else hashlib.sha256(";".join(digests).encode()).hexdigest(),
        recorded_return=_recorded_return(shares, agents, reward),
        notes=tuple(dict.fromkeys(note for _, loaded in named for note in loaded.notes)),
    )


def random_policy(agents: Agents) -> JointPolicy:
    """Acts at random; agents with the same spaces draw from one of them in turn."""
    kinds = _kinds(agents, range(len(agents)))
    return JointPolicy(agents, [(RandomActions(spaces.action), tuple(found)) for spaces, found in kinds])


def _written(share: tuple[str, LoadedPolicy]) -> str:
    """How a command line names this policy and its agents."""
    who, loaded = share
    return f"{who}={loaded.uri}" if who else loaded.uri


def _shares(policies: Mapping[str, Any], agents: Agents, trust: bool) -> list[Share]:
    """The `policies`, URIs or objects by agent, each loaded for the spaces of its agents."""
    columns: dict[str, list[int]] = {}
    for column, name in enumerate(agents.names):
        who = next((who for who in (name, _group(name), "") if who in policies), None)
        if who is None:
            raise PolicyError(
                f"no policy was given for {name}",
                hint=f"add --policy {name}=URI, or one for all: --policy URI",
            )
        columns.setdefault(who, []).append(column)
    return [
        Share(who, tuple(found), _loaded(policies[who], _common_spaces(agents, found), trust))
        for who, found in columns.items()
    ]


def _loaded(policy: Any, spaces: Spaces, trust: bool) -> LoadedPolicy:
    if isinstance(policy, str):
        return load_policy(policy, spaces, trust)
    from policyfuzz.environments.live import live_policy

    return live_policy(policy, spaces)


def _recorded_return(shares: Sequence[Share], agents: Agents, reward: str) -> float | None:
    """The return of a shared policy in training, where the episode of each agent counted separately."""
    recorded = shares[0].loaded.recorded_return
    if len(shares) > 1 or recorded is None or reward not in ("sum", "mean"):
        return None
    return recorded * len(agents) if reward == "sum" else recorded


def _uris(text: str | None, agents: Agents) -> dict[str, str]:
    """Who to URI; the empty name stands for all that are not named."""
    uris: dict[str, str] = {}
    for part in filter(None, map(str.strip, (text or "").split(";"))):
        found = _WHO.fullmatch(part)
        who, uri = (found[1].strip(), found[2].strip()) if found else ("", part)
        if who:
            _check_agent(who, agents)
        if who in uris:
            raise UsageError(f"two policies were given for {who or 'all agents'}: {uris[who]} and {uri}")
        uris[who] = uri
    if not uris:
        raise PolicyError(
            "no policy was given",
            hint="one for all agents: --policy sb3:model.zip; or one for each:"
            f" --policy {agents.names[0]}=sb3:a.zip --policy {agents.names[-1]}=py:b.py:act",
        )
    return uris


def _check_agent(who: str, agents: Agents) -> None:
    known = {*agents.names, *map(_group, agents.names)}
    if who not in known:
        raise unknown_name("agent", who, known)


def _group(name: str) -> str:
    """The name of an agent without its number."""
    return _NUMBER.sub("", name) or name


def _common_spaces(agents: Agents, columns: Iterable[int]) -> Spaces:
    """The spaces of all agents at `columns`, which must be equal."""
    kinds = [
        (spaces, [agents.names[column] for column in found]) for spaces, found in _kinds(agents, columns)
    ]
    if len(kinds) > 1:
        listed = "".join(
            f"\n  {', '.join(names)}: observations {spaces.observation}, actions {spaces.action}"
            for spaces, names in kinds
        )
        each = " ".join(f"--policy {_short(names)}=URI" for _, names in kinds)
        raise PolicyError(f"one policy cannot act for agents with different spaces:{listed}", f"give {each}")
    return kinds[0][0]


def _kinds(agents: Agents, columns: Iterable[int]) -> list[tuple[Spaces, list[int]]]:
    """The agents at `columns` that have the same spaces, together with these."""
    kinds: list[tuple[Spaces, list[int]]] = []
    for column in columns:
        spaces = Spaces(agents.observation_spaces[column], agents.action_spaces[column])
        alike = next((found for known, found in kinds if known == spaces), None)
        if alike is None:
            kinds.append((spaces, [column]))
        else:
            alike.append(column)
    return kinds


def _short(names: list[str]) -> str:
    """What stands for `names` on a command line."""
    groups = {_group(name) for name in names}
    return groups.pop() if len(groups) == 1 else names[0]
