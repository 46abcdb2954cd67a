"""Statistics of counts."""

import math

#: Standard normal quantile of a two-sided 95 % interval.
_Z = 1.959963984540054


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a proportion; sensible for rare events, unlike the normal one."""
    if trials == 0:
        return 0.0, 1.0
    rate, spread = successes / trials, _Z**2 / trials
    centre = (rate + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(rate * (1 - rate) / trials + spread / (4 * trials))
    return max(0.0, centre - half), min(1.0, centre + half)
