"""The exception tree. Every message says what was given; the hint says the likely fix."""

import difflib
from collections.abc import Iterable


class PolicyFuzzError(Exception):
    """Base of all errors that a user can cause or mend."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class UsageError(PolicyFuzzError):
    """An option or name that was given makes no sense."""


class PolicyError(PolicyFuzzError):
    """A policy cannot be loaded, does not fit the target, or does not act."""


class CampaignError(PolicyFuzzError):
    """A campaign folder cannot be made, opened, resumed or written."""


class UnhealthyTarget(PolicyFuzzError):
    """The target cannot be fuzzed with a meaningful result."""

    exit_code = 3


def unknown_name(kind: str, given: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is not among `known`, with a did-you-mean."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
    return UsageError(f"unknown {kind} {given!r}", hint=hint)
