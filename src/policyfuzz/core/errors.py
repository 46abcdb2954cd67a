"""The exception tree. Every message says what was given; the hint says the likely fix."""

import difflib
import signal
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from policyfuzz.core import forks


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
        return cls(f"the code of {whose} raised {described(error)}", hint)


class WorkersFailed(PolicyFuzzError):
    """No worker manages to run an episode."""

    exit_code = 3


class Interrupted(KeyboardInterrupt):
    """The user wants to stop: a signal said so, and not a target that raises KeyboardInterrupt itself."""

    is_pending = False  #: there was a signal; what it raised is lost if a destructor was running


def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Handle a signal as Ctrl-C."""
    Interrupted.is_pending = True
    raise Interrupted


def raise_pending_interrupt() -> None:
    """Raise what a signal has raised already, and got lost."""
    if Interrupted.is_pending:
        raise Interrupted


def is_interrupt(error: BaseException) -> bool:
    """True if `error` came from the user, and not from the code that it went through.

    Where `interrupt` does not handle Ctrl-C, as in a notebook, the two cannot be told apart.
    """
    if not isinstance(error, KeyboardInterrupt):
        return False
    return isinstance(error, Interrupted) or signal.getsignal(signal.SIGINT) is not interrupt


def described(error: BaseException) -> str:
    """What user code raised, and where, on one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    try:
        text = f": {error}"
    except Exception:  # its own way to say it fails
        text = ""
    return f"{type(error).__name__}{text}{where}"


@contextmanager
def blamed_on(whose: str) -> Iterator[None]:
    """Turn an exception from the user's code into an error that says `whose` code it was."""
    process = forks.this_process()
    try:
        yield
    except PolicyFuzzError:
        forks.end_copy_of(process)
        raise
    except BaseException as error:  # simulators, policies and oracles may raise anything
        forks.end_copy_of(process)
        if is_interrupt(error):
            raise
        raise TargetCodeError.of(whose, error) from error
    forbid_copies(process, whose)


def forbid_copies(process: int, whose: str) -> None:
    """End a copy of `process` that the user's code has made, and raise in the process itself."""
    forks.end_copy_of(process)
    if forks.has_been_copied(process):
        raise TargetCodeError(
            f"the code of {whose} forked this process and returned in both; the copy was ended",
            "let the child end itself with os._exit, or use subprocess or multiprocessing",
        )


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
