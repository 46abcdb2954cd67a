"""What can go wrong with an episode through no fault of the policy."""

import traceback
from dataclasses import dataclass
from pathlib import Path

#: Kinds of `EpisodeError`.
RAISED, NUMBERS, ENDLESS, HUNG, STATE = "raised", "numbers", "endless", "hung", "state"


@dataclass(frozen=True, slots=True)
class EpisodeError:
    """Why an episode could not be run to its end: a fault of the environment, not of the policy."""

    #: RAISED: an exception; NUMBERS: NaN; ENDLESS: no end; HUNG: no answer; STATE: not the start it was told.
    kind: str
    step: int  #: at which it happened, 0 for the reset
    text: str  #: the traceback, or what was wrong; its last line tells most


def traceback_text(error: BaseException) -> str:
    """The traceback of `error`, without our own frames before the first of the environment's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = str(Path(__file__).parent)
    first = next((i for i, frame in enumerate(frames) if not frame.filename.startswith(own)), 0)
    lines = traceback.format_list(frames[first:]) + traceback.format_exception_only(error)
    return "Traceback (most recent call last):\n" + "".join(lines).rstrip()
