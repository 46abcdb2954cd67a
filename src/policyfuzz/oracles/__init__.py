"""Oracles: verdicts over trajectories; compose with | and &, or write them as text."""

from policyfuzz.oracles.defaults import DefaultOracle, NominalEpisodes, default_oracle
from policyfuzz.oracles.episodes import Return, Terminated, Truncated
from policyfuzz.oracles.errors import NotANumber, Raised
from policyfuzz.oracles.language import canonical, info_keys, parse, resolved
from policyfuzz.oracles.named import Named
from policyfuzz.oracles.signals import Info, InfoNeverTrue, InfoTrue, OutOfSpace, Reward
from policyfuzz.oracles.verdicts import NONE, AllOf, AnyOf, Below, Oracle, Trajectories, Verdicts

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
    "parse",
    "resolved",
]
