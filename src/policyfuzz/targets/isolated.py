"""Loads a target in a process of its own: with workers, the coordinator builds no environment and no policy.

That process runs the constructors; the episodes of default oracles and further checks go to workers that it
starts. The coordinator gets inputs, oracle and what judges inputs, and everything else as bytes for workers.
"""

import os
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import PolicyFuzzError, TargetCodeError, blamed_on, described
from policyfuzz.core.executions import Executions
from policyfuzz.core.target import Diagnosis, MakeRunner, Run, Target
from policyfuzz.execution.executor import ExecutorChoice
from policyfuzz.execution.processes.isolated_process import IsolatedProcess
from policyfuzz.execution.processes.reaper import Reaper, new_mark
from policyfuzz.execution.processes.worker import end_before_coordinator, explain_exits
from policyfuzz.execution.shipped_modules import restore_registrations
from policyfuzz.execution.shipping import own_registrations, pack, pack_for_coordinator, unpack
from policyfuzz.targets.registry import load_target

#: Messages of the loading process: it is done, it failed, it waits for episodes of workers, it goes on.
_DONE, _RAISED, _WAITS, _GOES_ON = "done", "raised", "waits", "goes on"
#: Functions in the traceback of a process that died while it loaded the policy.
_POLICY_FRAMES = ("in load_policy", "in load_joint_policy", "in policy_for")


def load_isolated(
    choice: ExecutorChoice,
    name: str,
    policy: str | None,
    trust: bool,
    *,
    will_check: bool = True,
    seconds: float | None = None,
) -> Target:
    """The target called `name`, as `load_target` gives it, for the workers of `choice`.

    Its code runs in a process of its own for at most so many `seconds`: by default as many as a worker has to
    start. `will_check` keeps that process for the target's further checks.
    """
    order = _Order(name, policy, trust, choice, str(Path.cwd()), list(sys.path), own_registrations())
    loader = _Loader(order, seconds)
    try:
        packed, has_checks = loader.result()
        if packed is None:  # its parts cannot be copied, but it can be built, as we know now
            loader.close()
            return load_target(name, policy, trust, choice.make_runner)
        with blamed_on(f"target {name}"):
            target = unpack(packed)
    except BaseException:
        loader.close()
        raise
    if not (has_checks and will_check):
        loader.close()
    return replace(target, further_checks=_RemoteChecks(loader)) if has_checks else target


@dataclass(frozen=True, slots=True)
class _Order:
    """What the loading process is to load."""

    name: str
    policy: str | None
    trust: bool
    choice: ExecutorChoice
    folder: str
    path: list[str]
    environments: list[bytes]  #: that this program has registered with gymnasium

    def __str__(self) -> str:
        whose = "" if self.policy is None else f" with policy {self.policy}"
        return f"target {self.name}{whose}"


class _Loader:
    """The loading process, seen from the coordinator. It ends when this object is deleted."""

    def __init__(self, order: _Order, seconds: float | None) -> None:
        self._order = order
        self._seconds = order.choice.start_seconds if seconds is None else seconds
        mark = new_mark()
        self._reaper = Reaper(mark)
        self._process = IsolatedProcess(__name__, mark)
        self._reaper.watch(self._process.group)
        self.close = weakref.finalize(self, _end, self._process, self._reaper)
        self._send(order)

    @property
    def is_open(self) -> bool:
        """True if the process has not been ended yet."""
        return self.close.alive

    def again(self) -> "_Loader":
        """Another process that has loaded the same target."""
        loader = _Loader(self._order, self._seconds)
        loader.result()
        return loader

    def check(self, sound: Executions) -> list[Diagnosis]:
        """The further checks of the target."""
        self._send(sound)
        diagnoses: list[Diagnosis] = self.result()
        return diagnoses

    def result(self) -> Any:
        """The answer to what was sent last; raises what went wrong there."""
        limit: float | None = self._seconds
        try:
            while True:
                if not self._process.connection.poll(limit):
                    raise self._too_slow()
                kind, *rest = self._process.connection.recv()
                if kind == _DONE:
                    return rest[0]
                if kind == _RAISED:
                    raise rest[0]
                limit = None if kind == _WAITS else self._seconds
        except (EOFError, OSError):
            raise self._died(self._process.describe_end()) from None

    def _send(self, thing: Any) -> None:
        with suppress(OSError):  # it has died: `result` will say so
            self._process.connection.send(thing)

    def _too_slow(self) -> TargetCodeError:
        self._process.failure = f"it was not done within {self._seconds:g} s"
        self._process.abort()
        return self._died(self._process.describe_end(), "if it is only slow: --timeout")

    def _died(self, words: str, hint: str = "") -> TargetCodeError:
        is_policy = self._order.policy and any(frame in words for frame in _POLICY_FRAMES)
        what = f"policy {self._order.policy}" if is_policy else str(self._order)
        return TargetCodeError(f"the process that builds {what} did not survive it:\n{words}", hint)


def _end(process: IsolatedProcess, reaper: Reaper) -> None:
    process.kill()
    process.close()
    reaper.forget(process.group)
    reaper.close()


@dataclass(frozen=True, slots=True)
class _RemoteChecks:
    """Further checks that run in the loading process, which ends then; others load the target again."""

    loader: _Loader

    def __call__(self, sound: Executions, make_runner: MakeRunner) -> list[Diagnosis]:
        """The diagnoses, given random episodes that could be run; the process has workers of its own."""
        loader = self.loader if self.loader.is_open else self.loader.again()
        try:
            return loader.check(sound)
        finally:
            loader.close()


def main() -> None:
    """Load what a coordinator orders, at the other end of a socket whose descriptor is the argument."""
    end_before_coordinator()
    explain_exits()
    coordinator: Connection[Any, Any] = Connection(int(sys.argv[1]))
    process = os.getpid()
    with suppress(EOFError, OSError):  # the coordinator has ended, or needs no checks
        order: _Order = coordinator.recv()
        os.chdir(order.folder)
        sys.path[:] = order.path
        restore_registrations(order.environments)

        def make_runner(target: Target) -> Run:
            return _announced(order.choice.make_runner, target, coordinator.send)

        checks: Any = None

        def load() -> Any:
            nonlocal checks
            target = load_target(order.name, order.policy, order.trust, make_runner)
            checks = target.further_checks
            return _packed(target), checks is not None

        _answer(coordinator, process, load)
        while True:
            sound: Executions = coordinator.recv()
            _answer(coordinator, process, partial(checks, sound, make_runner))


def _answer(coordinator: "Connection[Any, Any]", process: int, work: Callable[[], Any]) -> None:
    try:
        message = (_DONE, work())
    except PolicyFuzzError as error:
        message = (_RAISED, _sendable(error))
    except BaseException as error:  # whatever the user's own code raises
        message = (_RAISED, TargetCodeError(f"the target cannot be loaded: {described(error)}"))
    if os.getpid() != process:  # a copy
        os._exit(0)
    coordinator.send(message)


def _packed(target: Target) -> bytes | None:
    """`target` for the coordinator; None if what the coordinator needs of it cannot be copied."""
    shipment = pack(target)
    try:
        return pack_for_coordinator(target, shipment)
    except PolicyFuzzError:
        raise
    except Exception:  # pickling runs methods of whatever is pickled
        return None


def _sendable(error: PolicyFuzzError) -> PolicyFuzzError:
    """`error` as one of our own classes, which the coordinator knows."""
    ours = next(kind for kind in type(error).__mro__ if kind.__module__.startswith("policyfuzz."))
    error.__class__ = ours
    return error


def _announced(make_runner: MakeRunner, target: Target, send: Callable[[Any], None]) -> Run:
    """What runs episodes of `target`, and tells the coordinator when: these have a time limit themselves."""
    send((_WAITS,))
    try:
        run = make_runner(target)
    finally:
        send((_GOES_ON,))

    def announced(*cases: Any) -> Executions:
        send((_WAITS,))
        try:
            return run(*cases)
        finally:
            send((_GOES_ON,))

    return announced


if __name__ == "__main__":
    main()
