"""Oracles: verdicts over trajectories; compose with | and &, or write them as text."""

from policyfuzz.core.oracle import (
    NONE,
    AllOf,
    AnyOf,
    Below,
    Composable,
    Oracle,
    Trajectories,
    Verdicts,
    at_first,
    signed,
    smallest,
)
from policyfuzz.oracles.conditions import (
    Info,
    InfoNeverTrue,
    InfoTrue,
    NotANumber,
    OutOfSpace,
    Raised,
    Return,
    Reward,
    Terminated,
    Truncated,
    WithKind,
)
from policyfuzz.oracles.defaults import DefaultOracle, NominalEpisodes, default_oracle
from policyfuzz.oracles.graded import Graded, TimeLeft, graded
from policyfuzz.oracles.language import canonical, info_keys, looks_at, resolved
from policyfuzz.oracles.language import parse as parse_oracle

__all__ = [
    "NONE",
    "AllOf",
    "AnyOf",
    "Below",
    "Composable",
    "DefaultOracle",
    "Graded",
    "Info",
    "InfoNeverTrue",
    "InfoTrue",
    "NominalEpisodes",
    "NotANumber",
    "Oracle",
    "OutOfSpace",
    "Raised",
    "Return",
    "Reward",
    "Terminated",
    "TimeLeft",
    "Trajectories",
    "Truncated",
    "Verdicts",
    "WithKind",
    "at_first",
    "canonical",
    "default_oracle",
    "graded",
    "info_keys",
    "looks_at",
    "parse_oracle",
    "resolved",
    "signed",
    "smallest",
]
