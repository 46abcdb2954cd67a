"""ACAS Xu: supervised networks that keep two aircraft apart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.activations import Activations
from policyfuzz.core.branches import Segment
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.files import is_file
from policyfuzz.core.inputs import Angle, InputSpace, Real, UniformMap
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Target, choice, joined, number, policy_path
from policyfuzz.policies.mlp import MlpBank, read_npz, shipped
from policyfuzz.targets.acasxu import encounter
from policyfuzz.targets.acasxu.networks import networks_in

#: Time buckets, each with its networks.
BUCKETS = 9
#: The policy of networks that come with the package as well, and were repaired.
REPAIRED = "repaired"
#: The tau bucket that the published experiments keep throughout.
_DEFAULT_BUCKET = 2
#: What `solvable` asks for: the collision is avoided for good, or for as long as the episode lasts.
_SOLVABLE = {"lasting": encounter.is_solvable, "paper": encounter.is_solvable_in_paper}

#: Noise as in the paper: 5 ft/s, 5 ft, 0.2 rad.
INPUTS = InputSpace(
    dimensions=(
        Real("own_speed", *encounter.OWN_SPEED, unit="ft/s", noise=5.0),
        Real("intruder_x", -encounter.RANGE_FEET[1], encounter.RANGE_FEET[1], unit="ft", noise=5.0),
        Real("intruder_y", -encounter.RANGE_FEET[1], encounter.RANGE_FEET[1], unit="ft", noise=5.0),
        Angle("intruder_heading", noise=0.2),
    ),
    constraint=encounter.is_valid,
    sampler=encounter.sample,
    uniform_map=UniformMap(4, encounter.from_uniform),
)


def make_target(options: Mapping[str, str], policy: str | None) -> Target:
    """The target; options: `bucket` (1-9), `solvable` (lasting or paper).

    The policy is the shipped networks for None, their repaired ones for `repaired`, acasxu:DIR or
    acasxu:FILE.npz.
    """
    bucket = number(options, "bucket", _DEFAULT_BUCKET, int, 1, BUCKETS)
    solvable = choice(options, "solvable", tuple(_SOLVABLE))
    said = {"bucket": str(bucket)} if bucket != _DEFAULT_BUCKET else {}
    said |= {"solvable": solvable} if solvable != "lasting" else {}
    uri, bank = _policy(policy, bucket)
    return Target(
        name=joined("acasxu", said),
        inputs=INPUTS,
        simulator=encounter.EncounterSimulator,
        policy=lambda: AdvisoryPolicy(bank),
        oracle=Below("range", encounter.COLLISION_FEET, kind="collision"),
        horizon=encounter.STEPS,
        policy_name=uri or "shipped networks",
        policy_uri=uri,
        policy_sha256=bank.sha256,
        solvable=_SOLVABLE[solvable],
        decay=encounter.RETURN_DECAY,
        actions=ActionSpace.choices(encounter.ADVISORIES),
        batch_size=1024,
        compiles=True,
        draw=_draw,
    )


class AdvisoryPolicy:
    """Gives the advisory with the lowest score; the previous advisory chooses the network."""

    def __init__(self, bank: MlpBank) -> None:
        self._bank = bank
        self._previous = np.zeros(0, np.int64)

    def begin(self, count: int) -> None:
        self._previous = np.zeros(count, np.int64)

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        advisories: NDArray[np.int64] = self._bank(observations, self._previous[rows]).argmin(axis=1)
        self._previous[rows] = advisories
        return advisories

    def activations(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> Activations:
        """The hidden layers, and which of the networks acts: equal numbers of two networks mean nothing."""
        return self._bank.with_activations(observations, self._previous[rows], tells_network=True)[1]

    def act_and_activations(
        self, observations: NDArray[Any], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Activations]:
        """Both of one pass."""
        scores, inside = self._bank.with_activations(observations, self._previous[rows], tells_network=True)
        advisories: NDArray[np.int64] = scores.argmin(axis=1)
        self._previous[rows] = advisories
        return advisories, inside

    def executed(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> None:
        self._previous[rows] = actions


def _policy(policy: str | None, bucket: int) -> tuple[str | None, MlpBank]:
    """The URI of `policy`, None for the shipped one, and its five networks of time `bucket`."""
    if policy == REPAIRED:
        if bucket != _DEFAULT_BUCKET:
            raise PolicyError(
                f"there are no repaired networks of bucket {bucket}",
                f"leave bucket={bucket} out, or --policy",
            )
        file, advisories = shipped("acasxu/repaired.npz"), len(encounter.ADVISORIES)
        hint = "expected the five networks of one time bucket: install PolicyFuzz again"
        return REPAIRED, read_npz(file).check_shape("repaired.npz", advisories, 5, (advisories,), hint)
    expected = "DIR, a folder of .onnx or .nnet networks, or FILE.npz with all 45; or --policy repaired"
    place = policy_path("acasxu", policy, "acasxu", expected)
    if place is None:
        return None, shipped_networks(bucket)
    bank = networks_of(place, bucket) if is_file(place) else networks_in(place, bucket)
    return f"acasxu:{place}", bank


def networks_of(file: Path, bucket: int) -> MlpBank:
    """The five networks of time `bucket` in an .npz `file` like the shipped one."""
    hint = "expected all networks of ACAS Xu, five for each time bucket, as the shipped file has them"
    count = BUCKETS * len(encounter.ADVISORIES)
    every = read_npz(file).check_shape(file.name, count, 5, (len(encounter.ADVISORIES),), hint)
    return replace(every, parameters=every.parameters[bucket - 1 :: BUCKETS].copy())


@cache
def shipped_networks(bucket: int) -> MlpBank:
    """The five networks of time `bucket` (1-9) that come with the package."""
    every = read_npz(shipped("acasxu/networks.npz"))
    return replace(every, parameters=every.parameters[bucket - 1 :: BUCKETS].copy())


def _draw(
    target: Target,
    row: NDArray[np.float64],
    seed: int,
    path: Path,
    branch: Sequence[Segment],
    last_chance: int | None,
) -> None:
    from policyfuzz.targets.acasxu.picture import draw_encounter

    draw_encounter(target, row, seed, path, branch, last_chance)
