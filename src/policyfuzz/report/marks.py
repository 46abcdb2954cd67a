"""Colours, shapes and words that pictures and films share."""

from dataclasses import dataclass

from policyfuzz.core.executions import Executions
from policyfuzz.core.visible import visible_line
from policyfuzz.store.triage_records import DELAYS_ONLY, Avoidance

#: Colours that colour-blind people can tell apart; crash and point of no return differ in style, too.
POLICY, WITNESS, BAND, CRASH, LAST_CHANCE = "#0072B2", "#E69F00", "#D6D6D6", "#C1272D", "#5B2A86"
#: Colour of failure modes M1, M2 and so on, and the marker that tells them apart in print.
MODES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#5B2A86", "X"),
)
OTHER_MODES = ("#6E6E6E", "h")
#: Characters of a name: a figure has room for so many.
_NAME_WIDTH = 44


@dataclass(frozen=True, slots=True)
class Mark:
    """How a class of points or a line looks: shape and style differ wherever colours do."""

    colour: str
    marker: str = "o"
    line: str | tuple[int, tuple[int, ...]] = "-"


#: Classes of episodes.
NORMAL, MUTATED, NEAR_MISS = Mark(POLICY), Mark("#56B4E9", "s", "--"), Mark(WITNESS, "^", "-.")
CRASHED = Mark(CRASH, "X", ":")
#: What episodes that were drawn at random look like beside others.
DRAWN = Mark("#666666", ".", ":")
#: Things that are compared, in their order; more than these begin again with the first.
SERIES = (
    Mark(POLICY, "o", "-"),
    Mark("#D55E00", "s", "--"),
    Mark("#009E73", "^", "-."),
    Mark("#CC79A7", "D", (0, (1, 1))),
    Mark(WITNESS, "v", (0, (5, 1, 1, 1, 1, 1))),
    Mark("#56B4E9", "P", (0, (8, 3))),
    Mark(LAST_CHANCE, "X", (0, (3, 1, 1, 1))),
)


def witness_name(avoidance: Avoidance, outcome: Executions) -> str:
    """What to call the episode that departs from the policy and ended in `outcome` within the horizon.

    Up to the first comma, it is a name that is short enough for a still.
    """
    if outcome.errors:
        return "another way, which could not be run"
    if outcome.crashed[0]:
        return f"another way, which crashes at step {int(outcome.verdicts.steps[0])}"
    return "delay, which crashes after the horizon" if avoidance.verdict == DELAYS_ONLY else "witness"


def picture_text(name: str, width: int = _NAME_WIDTH) -> str:
    """`name` for a picture, in at most `width` characters."""
    line = visible_line(name)
    return plain_text(line if len(line) <= width else f"{line[: width - 3]}...")


def plain_text(name: str) -> str:
    """`name` as a picture can show it: fonts have no control characters, and $ would begin a formula."""
    return visible_line(name).replace("$", r"\$")


def mode_mark(number: int) -> tuple[str, str]:
    """Colour and marker of failure mode `number`, from 1."""
    return MODES[number - 1] if 1 <= number <= len(MODES) else OTHER_MODES
