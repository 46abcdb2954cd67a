"""Colours, shapes and words that pictures and films share."""

from dataclasses import dataclass

from policyfuzz.core.executions import Executions
from policyfuzz.store.triage_records import DELAYS_ONLY, Avoidance

#: Colours that colour-blind people can tell apart; crash and point of no return differ in style, too.
POLICY, WITNESS, BAND, CRASH, LAST_CHANCE = "#0072B2", "#E69F00", "#D6D6D6", "#C1272D", "#5B2A86"


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
