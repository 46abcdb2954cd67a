"""What counts as a crash if the user does not say: chosen from how nominal episodes look."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.oracles.conditions import info_signal, number_text

#: Keys of `info` with which environments report that the task is done.
SUCCESS_KEYS = ("is_success", "success")

#: What this share of episodes does is usual, and anything else is not.
_USUAL_SHARE = 0.8

#: From this many episodes on, a pattern in the returns is more than chance.
_ENOUGH_FOR_PATTERN = 20

#: A gap in the returns so large, as a share of their range, parts them into two groups.
_WIDE_GAP = 0.5

#: Return and number of steps correlate less than this where steps of equal cost are all there is.
_PROPORTIONAL = -0.999

#: Returns that differ by less than this share of themselves are equal but for rounding.
_ROUNDING = 1e-9


#: Gives the returns of episodes with random actions; they are run only where they matter.
RandomReturns = Callable[[], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class NominalEpisodes:
    """n episodes from ordinary starts, without those that an error ended."""

    returns: NDArray[np.float64]  #: (n,)
    lengths: NDArray[np.int64]  #: (n,) states seen, the initial one included
    terminated: NDArray[np.bool_]  #: (n,) True where the environment ended it
    truncated: NDArray[np.bool_]  #: (n,) True where a time limit or the horizon did; may be both
    #: Key to (n,) the largest value that `info` had for it, NaN where it had none.
    info: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    last_rewards: NDArray[np.float64] | None = None  #: (n,) of the last step; tells sparse rewards apart
    failure: str = ""  #: the error of the first episode that was left out

    def __len__(self) -> int:
        return len(self.returns)


@dataclass(frozen=True, slots=True)
class DefaultOracle:
    """An oracle as text, and why it was chosen."""

    text: str
    reason: str


def default_oracle(seen: NominalEpisodes, at_random: RandomReturns | None = None) -> DefaultOracle:
    """The oracle for an environment of which only these episodes are known.

    A failure is what the policy does not do from ordinary starts, with a margin. `at_random` tells how low a
    return is when nothing is achieved; without it the margin comes from the spread of the returns alone.
    """
    if len(seen) == 0 or not np.isfinite(seen.returns).all():
        raise UsageError(
            f"no oracle can be chosen from {len(seen)} episodes, expected one or more with finite returns",
            "say what counts as a crash, for example --oracle terminated",
        )
    rules = (_success, partial(_early_end, at_random=at_random), _no_reward, _two_groups, _never_done)
    chosen = (rule(seen) for rule in rules)
    return next(filter(None, chosen), None) or _low_return(seen, at_random)


def _success(seen: NominalEpisodes) -> DefaultOracle | None:
    """Success was never reported, where the environment reports it and there is some."""
    for key in SUCCESS_KEYS:
        values = np.nan_to_num(seen.info.get(key, np.zeros(len(seen))))
        if (succeeded := int(np.count_nonzero(values))) > 0:
            name = info_signal(key)
            return DefaultOracle(
                f"!{name}",
                f"{name} is true at the end of {_of(succeeded, seen)}; where it never is, that is a crash",
            )
    return None


def _early_end(seen: NominalEpisodes, at_random: RandomReturns | None) -> DefaultOracle | None:
    """Ended before the time limit, where most episodes reach it."""
    reached = int(np.count_nonzero(seen.truncated))
    if reached < _USUAL_SHARE * len(seen):
        return None
    steps = int(np.median(seen.lengths[seen.truncated])) - 1
    reason = f"{_of(reached, seen)} run to their time limit ({steps} steps), so an earlier end is a crash"
    if len(early := seen.returns[~seen.truncated]):
        if np.median(early) > np.median(seen.returns[seen.truncated]):
            return DefaultOracle(
                "truncated",
                f"{_of(len(early), seen)} end before their time limit, and with a higher return:"
                " not to end is a crash",
            )
        return DefaultOracle("terminated", reason)
    # perhaps nothing ever ends an episode here, as in many tasks without falls or goals
    low = _low_return(seen, at_random)
    return DefaultOracle(
        f"terminated | {low.text}", f"{reason}; none was seen to end early, therefore also: {low.reason}"
    )


def _no_reward(seen: NominalEpisodes) -> DefaultOracle | None:
    """Nothing was gained, or something lost, where rewards are sparse."""
    returns, gained = seen.returns, int(np.count_nonzero(seen.returns > 0))
    if gained == 0:
        return None
    if _is_rewarded_at_end(seen):
        sparse, lost = "the only reward of an episode comes at its end", int(np.count_nonzero(returns < 0))
        if lost:
            return DefaultOracle("return<0", f"{sparse}, and {_of(lost, seen)} have a negative one: a crash")
        return DefaultOracle(
            "return<=0", f"{sparse}, which {_of(gained, seen)} have; to have none is a crash"
        )
    if returns.min() != 0 or 2 * gained <= len(seen):
        return None
    return DefaultOracle(
        "return<=0",
        f"no return is negative, and {_of(gained, seen)} have a positive one; to have none is a crash",
    )


def _is_rewarded_at_end(seen: NominalEpisodes) -> bool:
    """True where all reward comes with the last step, and there are others before it."""
    if seen.last_rewards is None or not (seen.lengths > 2).any():
        return False
    return bool((seen.last_rewards == seen.returns).all())


def _two_groups(seen: NominalEpisodes) -> DefaultOracle | None:
    """In the lower of two groups of returns with a wide gap between them."""
    returns = np.sort(seen.returns)
    gaps = np.diff(returns[: len(returns) // 2 + 1])  # what most episodes do is no crash
    wide = max(_WIDE_GAP * np.ptp(returns), _ROUNDING * np.abs(returns).max())
    if len(returns) < _ENOUGH_FOR_PATTERN or gaps.max() <= wide:
        return None
    low, high = returns[gaps.argmax()], returns[gaps.argmax() + 1]
    poor = seen.returns <= low
    count = int(np.count_nonzero(poor))
    apart = f"the returns of {_of(count, seen)} are {low:.6g} or less, and of the others {high:.6g} or more"
    if (poor == (seen.truncated & ~seen.terminated)).all():
        return DefaultOracle(
            "truncated", f"{apart}, and just those were cut by a time limit: that is a crash"
        )
    number = round_between(low + 0.25 * (high - low), high - 0.25 * (high - low))
    return DefaultOracle(f"return<{number_text(number)}", f"{apart}: a return below {number:.6g} is a crash")


def _never_done(seen: NominalEpisodes) -> DefaultOracle | None:
    """Cut by the time limit, where each step costs the same and most episodes end before it."""
    done = int(np.count_nonzero(seen.terminated))
    steps = seen.lengths - 1.0
    if (
        len(seen) < _ENOUGH_FOR_PATTERN
        or done < _USUAL_SHARE * len(seen)
        or np.ptp(steps) == 0
        or np.ptp(seen.returns) == 0
    ):
        return None
    if np.corrcoef(steps, seen.returns)[0, 1] > _PROPORTIONAL:
        return None
    return DefaultOracle(
        "truncated",
        f"each step costs the same, and {_of(done, seen)} end before a time limit cuts them, after "
        f"{np.median(steps):.6g} steps: to end is the task here, and not to is a crash",
    )


def _low_return(seen: NominalEpisodes, at_random: RandomReturns | None) -> DefaultOracle:
    """Return far below what is usual: halfway from the lowest one to what random actions earn.

    The lowest of some dozens of episodes is not the lowest of all, so a number right below it would call
    normal episodes failures. Halfway down, most of what the policy achieves is lost.
    """
    floor, median = float(seen.returns.min()), float(np.median(seen.returns))
    spread = median - floor
    played = np.empty(0) if at_random is None else at_random()
    played = played[np.isfinite(played)]
    chance = float(np.median(played)) if len(played) else math.nan
    gap = floor - chance
    if gap > max(spread, _ROUNDING * abs(median)):  # False where it is not known
        number = round_between(floor - 0.55 * gap, floor - 0.45 * gap)
        return DefaultOracle(
            f"return<{number_text(number)}",
            f"the lowest of {len(seen)} nominal returns is {floor:.6g}, the median {median:.6g}, and random"
            f" actions earn {chance:.6g}: a return below {number:.6g}, halfway between, is a crash",
        )
    if spread <= _ROUNDING * abs(median):
        return _below_equal_returns(seen, median)
    number = round_between(floor - 1.1 * spread, floor - 0.9 * spread)
    return DefaultOracle(
        f"return<{number_text(number)}",
        f"the lowest of {len(seen)} nominal returns is {floor:.6g}, the median {median:.6g}, and their"
        f" distance is left once more as a margin: a return below {number:.6g} is a crash",
    )


def _below_equal_returns(seen: NominalEpisodes, usual: float) -> DefaultOracle:
    number = round_between(usual - 0.12 * abs(usual), usual - 0.08 * abs(usual))
    return DefaultOracle(
        f"return<{number_text(number)}",
        f"the usual return of {len(seen)} nominal episodes is {usual:.6g}, and next to none is lower: "
        f"one below {number:.6g} is a crash",
    )


def _of(count: int, seen: NominalEpisodes) -> str:
    return f"{count} of {len(seen)} nominal episodes"


def round_between(low: float, high: float) -> float:
    """The middle of `low` and `high`, rounded to as few digits as keep it between them."""
    middle = low + (high - low) / 2
    if not low < high:
        return middle
    digits = -1 - int(np.floor(np.log10(max(abs(low), abs(high)))))
    while True:
        number = float(round(middle, digits))
        if low <= number <= high:
            return number
        digits += 1
