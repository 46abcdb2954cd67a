"""BipedalWalker: a network trained by reinforcement that walks over stumps, stairs and pits."""

from collections.abc import Mapping

import numpy as np

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.errors import UsageError
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Target, policy_path
from policyfuzz.environments.families.bipedal_walker import OBSTACLE_INPUTS
from policyfuzz.oracles.graded import Graded
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri import load_policy, schemes
from policyfuzz.targets.bipedal.networks import MOTORS, MotorPolicy, network_in, shipped_network
from policyfuzz.targets.bipedal.simulator import WalkerSimulator
from policyfuzz.targets.bipedal.walkers import package

#: Six seconds, as in the published experiments: three to five obstacles.
_DEFAULT_HORIZON = 300
#: As gymnasium registers the environment; walkers that arrive end sooner.
_FULL_HORIZON = 2000

_MOTOR_NAMES = ("hip 1", "knee 1", "hip 2", "knee 2")
#: Random inputs before the first is changed: some ten seconds, with their probes.
_SAMPLES = 300


def make_target(options: Mapping[str, str], policy: str | None, trust: bool = False) -> Target:
    """The target; options: `horizon` (steps or full).

    The policy is the shipped one for None, bipedal:FILE, or any other that walks, such as sb3:FILE.zip.
    """
    horizon = _horizon(options.get("horizon", str(_DEFAULT_HORIZON)))
    loaded = _policy(policy, trust)
    return Target(
        name="bipedal" if horizon == _DEFAULT_HORIZON else f"bipedal:horizon={horizon}",
        inputs=OBSTACLE_INPUTS,
        simulator=WalkerSimulator,
        policy=loaded.make,
        oracle=Graded(Below("clear", 0.5, kind="fall")),
        horizon=horizon,
        policy_name=loaded.name,
        policy_uri=loaded.uri if policy else None,
        policy_sha256=loaded.sha256,
        seed_is_situation=True,  # sizes and gaps of the obstacles
        notes=tuple(f"policy: {note}" for note in loaded.notes),
        actions=ActionSpace.box(-np.ones(MOTORS), np.ones(MOTORS), _MOTOR_NAMES),
        batch_size=64,
        samples=_SAMPLES,
        film_steps_per_second=50,  # real time
    )


def _policy(policy: str | None, trust: bool) -> LoadedPolicy:
    if policy is not None and policy.partition(":")[0] in schemes():
        walker = package().BipedalWalker()
        return load_policy(policy, Spaces(walker.observation_space, walker.action_space), trust)
    file = policy_path("bipedal", policy, "bipedal", "FILE, an .npz or .json with one network")
    bank = shipped_network() if file is None else network_in(file)
    name = "shipped network" if file is None else f"bipedal:{file}"
    return LoadedPolicy(lambda: MotorPolicy(bank), name, name, bank.sha256)


def _horizon(text: str) -> int:
    if text == "full":
        return _FULL_HORIZON
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= _FULL_HORIZON:
        raise UsageError(
            f"horizon is {text!r}, expected full, or a number of steps from 1 to {_FULL_HORIZON}"
        )
    return int(text)
