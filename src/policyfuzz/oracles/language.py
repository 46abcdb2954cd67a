"""Oracles as text: `terminated | reward<=-100 as crash`. See docs/oracles.md for all words."""

from policyfuzz.errors import UsageError
from policyfuzz.oracles.grammar import read
from policyfuzz.oracles.tree import NominalQuantile, Part
from policyfuzz.oracles.verdicts import Oracle


def parse(text: str, quantile: NominalQuantile | None = None) -> Oracle:
    """The oracle that `text` describes; `quantile` gives the numbers for return<q5% and the like."""
    return _filled_in(text, quantile).oracle()


def resolved(text: str, quantile: NominalQuantile | None = None) -> str:
    """The canonical `text` with numbers in place of quantiles: the same oracle, wherever it is read."""
    return _filled_in(text, quantile).text


def canonical(text: str) -> str:
    """One way to write what `text` says, without needless spaces and parentheses; no comma, no colon."""
    return read(text).text


def info_keys(text: str) -> tuple[str, ...]:
    """The keys of `info` that a simulator must record for this oracle, in the order of the text."""
    return read(text).keys


def _filled_in(text: str, quantile: NominalQuantile | None) -> Part:
    def lacking(share: float) -> float:
        raise UsageError(
            f"the oracle {text!r} asks for a quantile (q{share}) of nominal returns, and there are none",
            "write a number instead",
        )

    return read(text).resolved(quantile or lacking)
