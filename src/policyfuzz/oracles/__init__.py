"""Oracles: verdicts over trajectories; compose with | and &."""

from policyfuzz.oracles.verdicts import NONE, AllOf, AnyOf, Below, Oracle, Trajectories, Verdicts

__all__ = ["NONE", "AllOf", "AnyOf", "Below", "Oracle", "Trajectories", "Verdicts"]
