"""Episodes with known frames, for tests of monitors."""

import numpy as np

from policyfuzz.analysis.monitor_episodes import NONE, Episodes
from policyfuzz.monitors.monitor import OBSERVATIONS

STEPS = 12


def made_episodes(
    rng: np.random.Generator,
    count: int,
    width: int = 4,
    crash_at: int | None = None,
    towards: float = 0.0,
    lineages: np.ndarray | None = None,
    centres: np.ndarray | None = None,
) -> Episodes:
    """`count` episodes of noise; those that crash move `towards` a number, or lie around their `centres`."""
    length = STEPS if crash_at is None else crash_at
    frames = 0.3 * rng.normal(size=(count, length, width))
    if crash_at is not None:
        frames += towards * np.linspace(0, 1, length)[:, None]
    if centres is not None:
        frames += centres[:, None]
    return Episodes(
        np.arange(0, (count + 1) * length, length),
        np.full(count, NONE if crash_at is None else crash_at),
        np.full(count, np.nan),
        np.arange(count, dtype=np.uint64) if lineages is None else lineages.astype(np.uint64),
        np.full(count, NONE),
        {OBSERVATIONS: frames.reshape(-1, width)},
    )
