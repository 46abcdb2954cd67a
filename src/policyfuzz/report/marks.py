"""Colours and words that pictures and films share."""

from policyfuzz.core.executions import Executions
from policyfuzz.store.triage_records import DELAYS_ONLY, Avoidance

#: Colours that colour-blind people can tell apart; crash and point of no return differ in style, too.
POLICY, WITNESS, BAND, CRASH, LAST_CHANCE = "#0072B2", "#E69F00", "#D6D6D6", "#C1272D", "#5B2A86"


def witness_name(avoidance: Avoidance, outcome: Executions) -> str:
    """What to call the episode that departs from the policy and ended in `outcome` within the horizon.

    Up to the first comma, it is a name that is short enough for a still.
    """
    if outcome.errors:
        return "another way, which could not be run"
    if outcome.crashed[0]:
        return f"another way, which crashes at step {int(outcome.verdicts.steps[0])}"
    return "delay, which crashes after the horizon" if avoidance.verdict == DELAYS_ONLY else "witness"
