"""The exact interval of a rate (Clopper and Pearson), without SciPy."""

import math

import numpy as np

#: Chance that the truth lies above the interval, and below it, at most.
_TAIL = 0.025
#: Relative size of the last step towards a bound (each step squares the error), and the most steps.
_PRECISION, _MOST_STEPS = 1e-12, 100


def exact_interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a rate, from independent `trials`; 0 to 1 if there were none."""
    low = _rate_with_tail(successes, trials, _TAIL) if successes else 0.0
    high = _rate_with_tail(successes + 1, trials, 1 - _TAIL) if successes < trials else 1.0
    return low, high


def _rate_with_tail(count: int, draws: int, tail: float) -> float:
    """The rate at which `draws` give `count` or more, 1 at least, with probability `tail`.

    Newton's method within a bracket. Importing scipy.special for it would take most of the time of `status`.
    """
    low, high, rate = 0.0, 1.0, count / (draws + 1)
    for _ in range(_MOST_STEPS):
        reached, slope = _tail(count, draws, rate)
        low, high = (rate, high) if reached < tail else (low, rate)
        guess = rate - (reached - tail) / slope if slope > 0 else math.nan
        last, rate = rate, guess if low < guess < high else (low + high) / 2
        if abs(rate - last) <= _PRECISION * rate:
            break
    return rate


def _tail(count: int, draws: int, rate: float) -> tuple[float, float]:
    """Probability that `draws` of this `rate` give `count` or more, and its derivative by the rate.

    Sums binomial probabilities relative to that of the likeliest count; those left out are below 1e-16.
    """
    mode = min(int((draws + 1) * rate), draws)
    reach = 30 + int(10 * math.sqrt(draws * rate * (1 - rate)))
    odds = rate / (1 - rate)
    below = np.arange(mode, max(mode - reach, 0), -1)
    above = np.arange(mode + 1, min(mode + reach, draws) + 1)
    falling = np.cumprod(below / ((draws + 1 - below) * odds))
    rising = np.cumprod((draws + 1 - above) * odds / above)
    terms = np.concatenate([falling[::-1], [1.0], rising])
    place, total = count - (mode - len(below)), terms.sum()
    probability = terms[place] / total if 0 <= place < len(terms) else 0.0
    return float(terms[max(place, 0) :].sum() / total), float(probability * count / rate)
