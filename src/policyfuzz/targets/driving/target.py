"""The targets driving-rl and driving-il: a car in traffic, and who drives it."""

from collections.abc import Callable, Mapping

import numpy as np

from policyfuzz.core.actions import ActionSpace, Macro
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Target, number, policy_path
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.driving import scenario
from policyfuzz.targets.driving.networks import DrivingPolicy, cloned, expert, network_in
from policyfuzz.targets.driving.simulator import DrivingSimulator

#: Both small, since an episode takes half a second or more.
_BATCH = 8
_SAMPLES = 32
#: Steps; more than it takes to the end of any road.
_LONGEST = 10_000

#: Steering, left is positive, and throttle or, if negative, brake; braking first, as it most often saves.
_ACTIONS = ActionSpace(
    -np.ones(2),
    np.ones(2),
    np.zeros(2, np.bool_),
    (
        Macro("brake, and steer as before", (np.nan, -1.0)),
        Macro("brake straight", (0.0, -1.0)),
        Macro("roll, and steer as before", (np.nan, 0.0)),
        Macro("steer left, and throttle as before", (0.3, np.nan)),
        Macro("steer right, and throttle as before", (-0.3, np.nan)),
        Macro("brake to the left", (0.3, -1.0)),
        Macro("brake to the right", (-0.3, -1.0)),
    ),
    ("steering", "throttle"),
)


def make_rl_target(options: Mapping[str, str], policy: str | None) -> Target:
    """driving-rl: the PPO expert that comes with MetaDrive drives, or the network of driving:FILE.npz."""
    return _make_target("driving-rl", expert, 100, options, policy)


def make_il_target(options: Mapping[str, str], policy: str | None) -> Target:
    """driving-il: a network cloned from the expert drives, or the one of driving:FILE.npz."""
    return _make_target("driving-il", cloned, 200, options, policy)


def _make_target(
    name: str,
    own_policy: Callable[[], MlpBank],
    default_horizon: int,
    options: Mapping[str, str],
    policy: str | None,
) -> Target:
    """The target `name`; options: `horizon`, policy: None for `own_policy` or driving:FILE.npz."""
    horizon = number(options, "horizon", default_horizon, int, 1, _LONGEST)
    file = policy_path(name, policy, "driving", "FILE.npz, a network of 275 inputs and 2 or 4 outputs")
    bank = own_policy() if file is None else network_in(file)
    uri = None if file is None else f"driving:{file}"
    return Target(
        name=name if horizon == default_horizon else f"{name}:horizon={horizon}",
        inputs=scenario.INPUTS,
        simulator=DrivingSimulator,
        policy=lambda: DrivingPolicy(bank),
        oracle=Below("clearance", 0.0, kind="collision") | Below("road_margin", 0.0, kind="off-road"),
        horizon=horizon,
        policy_name=uri or ("MetaDrive's expert" if name == "driving-rl" else "shipped network"),
        policy_uri=uri,
        policy_sha256=bank.sha256,
        solvable=scenario.is_solvable,
        actions=_ACTIONS,
        batch_size=_BATCH,
        samples=_SAMPLES,
        film_steps_per_second=10,
    )
