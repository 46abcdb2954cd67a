"""A monitor beside one episode: it remembers what a score needs of the steps before."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from policyfuzz.monitors.monitor import Monitor


class Watch:
    """Scores an episode step by step; as many as there are episodes can run at once.

    watch = monitor.watch()
    watch.begin()               at the start of each episode
    watch.score(observation)    at each step; watch.has_alarm says if there was an alarm since
    """

    __slots__ = ("_monitor", "_previous", "has_alarm")

    def __init__(self, monitor: "Monitor") -> None:
        self._monitor = monitor
        self.begin()

    def begin(self) -> None:
        """Forget all that was seen: an episode begins."""
        self._previous: Any = None
        self.has_alarm = False  #: any score of the episode was above the threshold, or not a number

    def score(self, given: Any) -> float:
        """How near a crash seems at this step. `given` is one observation, or its activations."""
        monitor = self._monitor
        score = float(monitor.score(given, self._previous))
        if monitor.detector.needs_previous:
            self._previous = np.array(given, np.float64)  # the caller may write into its own again
        if not score <= monitor.facts.threshold:
            self.has_alarm = True
        return score
