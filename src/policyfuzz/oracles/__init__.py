"""Oracles: verdicts over trajectories; compose with | and &, or write them as text."""

from policyfuzz.core.oracle import NONE, AllOf, AnyOf, Below, Oracle, Trajectories, Verdicts
from policyfuzz.oracles.conditions import (
    Info,
    InfoNeverTrue,
    InfoTrue,
    Named,
    NotANumber,
    OutOfSpace,
    Raised,
    Return,
    Reward,
    Terminated,
    Truncated,
)
from policyfuzz.oracles.defaults import DefaultOracle, NominalEpisodes, default_oracle
from policyfuzz.oracles.language import canonical, info_keys, resolved
from policyfuzz.oracles.language import parse as parse_oracle

__all__ = [
    "NONE",
    "AllOf",
    "AnyOf",
    "Below",
    "DefaultOracle",
    "Info",
    "InfoNeverTrue",
    "InfoTrue",
    "Named",
    "NominalEpisodes",
    "NotANumber",
    "Oracle",
    "OutOfSpace",
    "Raised",
    "Return",
    "Reward",
    "Terminated",
    "Trajectories",
    "Truncated",
    "Verdicts",
    "canonical",
    "default_oracle",
    "info_keys",
    "parse_oracle",
    "resolved",
]
