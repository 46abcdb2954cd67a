"""What is looked at in Gymnasium targets, beyond what every target is asked."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from policyfuzz.diagnosis import Diagnosis, Level
from policyfuzz.executions import Executions
from policyfuzz.oracles.defaults import NominalEpisodes
from policyfuzz.policies.loaded import LoadedPolicy
from policyfuzz.policies.protocol import Policy
from policyfuzz.target import Target, runner_of

#: How far below the recorded return, as a share of it and in standard errors, is too far for chance.
_TOO_FAR, _STANDARD_ERRORS = 0.5, 3.0
#: Episodes with random actions that tell whether an oracle can fire at all.
_RANDOM_EPISODES = 50


@dataclass(frozen=True, slots=True)
class GymChecks:
    """The checks of one target, to be made once it exists."""

    policy: LoadedPolicy
    random: Callable[[], Policy]  #: acts at random
    nominal: Callable[[], NominalEpisodes]
    info_keys: tuple[str, ...]  #: that the oracle looks at
    has_other_horizon: bool  #: than the environment's own, which the policy was trained with
    at_random: Callable[[], NominalEpisodes]  #: what random actions earn

    def of(self, target: Target) -> Callable[[Executions], list[Diagnosis]]:
        """The function that a target is to be given."""

        def check(sound: Executions) -> list[Diagnosis]:
            recorded, nominal = self.policy.recorded_return, self.nominal()
            found = [_recorded_return(recorded, nominal, self.has_other_horizon, self.at_random)]
            found += _missing_keys(self.info_keys, nominal)
            return found if sound.crashed.any() else [*found, _can_fire(target, self.random)]

        return check


def _recorded_return(
    recorded: float | None,
    nominal: NominalEpisodes,
    has_other_horizon: bool,
    at_random: Callable[[], NominalEpisodes],
) -> Diagnosis:
    """Whether the policy earns what its file says it earned in training."""
    returns = nominal.returns[np.isfinite(nominal.returns)]
    if len(returns) == 0:
        said = "no episode from the environment's own reset could be run to a finite return"
        return Diagnosis("policy", Level.WARNING, said, "look at the errors first")
    mean, error = float(returns.mean()), float(returns.std() / np.sqrt(len(returns)))
    said = f"returns {mean:.4g} on average from the environment's own reset"
    if recorded is None:
        return Diagnosis("policy", Level.GOOD, f"{said}; its file records nothing to compare with")
    if has_other_horizon:
        return Diagnosis("policy", Level.GOOD, f"{said}; {recorded:.4g} in training, with another horizon")
    short = recorded - mean
    if short > _TOO_FAR * max(abs(recorded), float(returns.std())) and short > _STANDARD_ERRORS * error:
        # training acts by chance, and the best actions alone may earn less: that is no broken policy
        is_broken = mean < (float(at_random().returns.mean()) + recorded) / 2
        return Diagnosis(
            "policy",
            Level.UNHEALTHY if is_broken else Level.WARNING,
            f"{said}, and {recorded:.4g} when it was trained",
            "are VecNormalize statistics missing (sb3:FILE.zip?normalize=STATS.pkl), a wrapper"
            " (gym:ENVIRONMENT:wrap=module:Class), or arguments of it (gym:ENVIRONMENT:env.NAME=VALUE)?",
        )
    return Diagnosis("policy", Level.GOOD, f"{said}; {recorded:.4g} when it was trained")


def _missing_keys(keys: tuple[str, ...], nominal: NominalEpisodes) -> list[Diagnosis]:
    """What may be wrong where the oracle looks at keys that `info` never has.

    Some environments have a key only in the step in which it is true, so a missing one may be well spelt.
    """
    missing = [key for key in keys if np.isnan(nominal.info[key]).all()]
    if not missing:
        return []
    said = f"info never has {' and '.join(missing)} as a number in {len(nominal)} nominal episodes"
    hint = "is the key in the oracle spelt as the environment spells it?"
    return [Diagnosis("oracle keys", Level.WARNING, said, hint)]


def _can_fire(target: Target, random: Callable[[], Policy]) -> Diagnosis:
    """Whether random actions crash, where the policy has not."""
    run = runner_of(replace(target, policy=random))
    rng = np.random.default_rng(0)
    inputs = target.inputs.sample(rng, 4 * _RANDOM_EPISODES)
    inputs = inputs[target.inputs.is_valid(inputs)][:_RANDOM_EPISODES]
    crashed = run(inputs, np.arange(len(inputs), dtype=np.uint64)).crashed
    if crashed.any():
        said = f"the policy has not crashed yet; random actions crash in {crashed.mean():.0%} of episodes"
        return Diagnosis("oracle can fire", Level.GOOD, said)
    return Diagnosis(
        "oracle can fire",
        Level.WARNING,
        f"neither the policy nor random actions crash in {len(inputs)} episodes:"
        f" can {' or '.join(target.oracle.kinds)} happen at all?",
        "try another --oracle, or wider bounds with --input",
    )
