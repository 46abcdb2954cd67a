"""The exception tree. Every message says what was given; the hint says the likely fix."""

import difflib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class PolicyFuzzError(Exception):
    """Base of all errors that a user can cause or fix."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # constructors of subclasses may take other arguments
        return _remade, (type(self), self.message, self.hint)

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class UsageError(PolicyFuzzError):
    """An option or a name is wrong."""


class MissingExtra(PolicyFuzzError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, hint: str) -> None:
        super().__init__(f"this needs the package {package}, which is not installed", hint)


class PolicyError(PolicyFuzzError):
    """A policy cannot be loaded, does not fit the target, or does not act."""


class CampaignError(PolicyFuzzError):
    """A campaign cannot be created, opened, resumed or written."""


class CannotRender(PolicyFuzzError):
    """An episode cannot be drawn here, although its simulator can render."""


class UnhealthyTarget(PolicyFuzzError):
    """The target cannot be fuzzed with a meaningful result."""

    exit_code = 3


class TargetCodeError(PolicyFuzzError):
    """The code of a target failed: its simulator, policy or oracle."""

    exit_code = 3

    @classmethod
    def of(cls, whose: str, error: BaseException, hint: str = "") -> "TargetCodeError":
        """The error for an exception from the user's code; `whose` names it for a reader."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
        return cls(f"the code of {whose} raised {type(error).__name__}: {error} ({where})", hint)


class WorkersFailed(PolicyFuzzError):
    """No worker manages to run an episode."""

    exit_code = 3


@contextmanager
def blamed_on(whose: str) -> Iterator[None]:
    """Turn an exception from the user's code into an error that says `whose` code it was."""
    try:
        yield
    except PolicyFuzzError:
        raise
    except (Exception, SystemExit) as error:  # simulators, policies and oracles may raise anything
        raise TargetCodeError.of(whose, error) from error


def _remade(kind: type[PolicyFuzzError], message: str, hint: str) -> PolicyFuzzError:
    """The error that was pickled."""
    error = kind.__new__(kind, message)
    PolicyFuzzError.__init__(error, message, hint)
    return error


def unknown_name(kind: str, given: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is not among `known`, with a did-you-mean."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
    return UsageError(f"unknown {kind} {given!r}", hint=hint)
