"""What can go wrong with an episode through no fault of the policy."""

import traceback
from dataclasses import dataclass
from pathlib import Path

#: Kinds of `EpisodeError`.
RAISED, NUMBERS, ENDLESS, HUNG, STATE, CRASHED = "raised", "numbers", "endless", "hung", "state", "crashed"

#: Characters of a traceback that are kept, half of them from its end: thousands of errors must fit in a file.
_LONGEST = 20_000


#: Characters of a line that is still a summary.
_LONG_LINE = 200


@dataclass(frozen=True, slots=True)
class EpisodeError:
    """Why an episode could not be run to its end: a fault of the environment, not of the policy."""

    #: RAISED: an exception; NUMBERS: NaN; ENDLESS: no end; HUNG: no answer; STATE: not the start it was told;
    #: CRASHED: it took the process with it that it ran in.
    kind: str
    step: int  #: at which it happened, 0 for the reset
    text: str  #: the traceback, or what was wrong

    @property
    def summary(self) -> str:
        """The last line of the text, which tells most."""
        line = self.text.rstrip().splitlines()[-1] if self.text.strip() else self.kind
        return line if len(line) <= _LONG_LINE else f"{line[:_LONG_LINE]} ..."


def traceback_text(error: BaseException) -> str:
    """The traceback of `error`, without our own frames before the first of the environment's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = str(Path(__file__).parent)
    first = next((i for i, frame in enumerate(frames) if not frame.filename.startswith(own)), 0)
    lines = traceback.format_list(frames[first:]) + traceback.format_exception_only(error)
    text = "Traceback (most recent call last):\n" + "".join(lines).rstrip()
    if len(text) > _LONGEST:
        left_out = f"\n... ({len(text) - _LONGEST} characters left out)\n"
        text = text[: _LONGEST // 2] + left_out + text[-_LONGEST // 2 :]
    return text.encode(errors="backslashreplace").decode()  # no file holds half a surrogate pair
