"""What a simulator and a policy must offer, and how an episode can fail through no fault of the policy."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

#: Kinds of `EpisodeError`.
RAISED, NUMBERS, ENDLESS, HUNG, STATE, CRASHED = "raised", "numbers", "endless", "hung", "state", "crashed"

#: Characters of a traceback that are kept, half of them from its end: thousands of errors must fit in a file.
_LONGEST_TRACEBACK = 20_000
#: Characters of a line that is still a summary.
_LONGEST_SUMMARY = 200


class Simulator(Protocol):
    """Holds n episodes at once. An episode depends on its input and seed only, never on its neighbours."""

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the columns of `Frame.signals`."""
        ...

    @property
    def capacity(self) -> int | None:
        """Episodes it can hold at once, None for any number."""
        ...

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> "Frame":
        """Start an episode for each row of `inputs` (n, d); `seeds` (n,) feed all its randomness."""
        ...

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> "Frame":
        """Advance episodes `rows` (m,), increasing, by one step with `actions` (m, ...)."""
        ...


@runtime_checkable
class Renders(Protocol):
    """A simulator that can be filmed."""

    def render(self, row: int) -> NDArray[np.uint8]:
        """A picture (height, width, 3) of episode `row` as it is now; the same size throughout."""
        ...


class Policy(Protocol):
    """Acts for n episodes at once; may remember something about each of them.

    The action of an episode must not depend on the other rows of the batch, bit for bit.
    """

    def begin(self, count: int) -> None:
        """Forget everything and prepare for `count` new episodes."""
        ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Actions (m, ...) for `observations` (m, ...) of episodes `rows` (m,)."""
        ...


@dataclass(frozen=True, slots=True)
class EpisodeError:
    """Why an episode could not be run to its end: a fault of the environment, not of the policy."""

    #: RAISED: an exception; NUMBERS: NaN; ENDLESS: no end; HUNG: no answer; STATE: another start than given;
    #: CRASHED: it killed the process that it ran in.
    kind: str
    step: int  #: at which it happened, 0 for the reset
    text: str  #: the traceback, or what was wrong

    @property
    def summary(self) -> str:
        """The last line of the text, which says most."""
        line = self.text.rstrip().splitlines()[-1] if self.text.strip() else self.kind
        return line if len(line) <= _LONGEST_SUMMARY else f"{line[:_LONGEST_SUMMARY]} ..."


@dataclass(frozen=True, slots=True)
class Frame:
    """What m episodes show after a reset or a step."""

    observations: NDArray[Any]  #: (m, ...) what the policy sees
    states: NDArray[np.float64]  #: (m, k) what the density sees; often the same as the observations
    signals: NDArray[np.float64]  #: (m, s) what the oracle judges, in the order of `Simulator.signals`
    rewards: NDArray[np.float64]  #: (m,) zero after a reset
    ended: NDArray[np.bool_]  #: (m,) True where the episode is over
    #: Position in this frame to what went wrong; these episodes have ended, and their numbers mean nothing.
    errors: Mapping[int, EpisodeError] = field(default_factory=dict)


def traceback_text(error: BaseException) -> str:
    """The traceback of `error`, without our frames before the first of the environment's."""
    frames = traceback.extract_tb(error.__traceback__)
    package = str(Path(__file__).parents[1])
    first = next((i for i, frame in enumerate(frames) if not frame.filename.startswith(package)), 0)
    lines = traceback.format_list(frames[first:]) + traceback.format_exception_only(error)
    text = "Traceback (most recent call last):\n" + "".join(lines).rstrip()
    if len(text) > _LONGEST_TRACEBACK:
        left_out = f"\n... ({len(text) - _LONGEST_TRACEBACK} characters left out)\n"
        text = text[: _LONGEST_TRACEBACK // 2] + left_out + text[-_LONGEST_TRACEBACK // 2 :]
    return text.encode(errors="backslashreplace").decode()  # no file holds half a surrogate pair
