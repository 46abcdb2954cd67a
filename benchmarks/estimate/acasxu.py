"""An estimate on acasxu beside more than a million random draws."""

import numpy as np

from benchmarks.estimate.repeats import Repeats, repeat_at_once
from benchmarks.versus import reference
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.target import Runner
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.targets.registry import load_target

#: Draws from which the share of solvable inputs is known to a hundredth of a per cent point or so.
_DRAWS = 1_000_000


def random_draws(seed: int) -> FailureProbability:
    """The failure probability by the reference set of `versus`.

    That set counts all valid inputs, and asks only crashes whether they are solvable. So the number of
    solvable draws is the share of solvable inputs, drawn anew, of the number of valid ones.
    """
    target, known = load_target("acasxu"), reference.find("acasxu")
    if known is None or known.origin.policy_sha256 != target.policy_sha256 or target.solvable is None:
        raise CampaignError(
            "there is no reference set of acasxu", "python -m benchmarks versus-reference --target acasxu"
        )
    inputs = target.inputs.sample(np.random.default_rng([seed, 0x616361]), _DRAWS)
    valid = inputs[target.inputs.is_valid(inputs)]
    solvable = float(np.mean(target.solvable(valid)))
    return FailureProbability.of(len(known), round(known.episodes * solvable), of_solvable=True)


def agree(found: Repeats, known: FailureProbability) -> bool:
    """True if the mean of the estimates differs from random draws by no more than both may be off (95 %)."""
    values = found.estimates[:, 0]
    half = np.hypot(
        1.96 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else known.probability,
        (known.high - known.low) / 2,
    )
    return bool(abs(values.mean() - known.probability) <= half)


def estimates(count: int, seed: int, truth: float) -> Repeats:
    """`count` estimates on acasxu."""
    target = load_target("acasxu")
    return repeat_at_once(target, Runner(target), truth, count, seed)
