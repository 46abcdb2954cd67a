"""Who else hears of a running campaign: logs for other programs, and a command for each new mode."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from policyfuzz.campaign.events import Event, Listener, Started
from policyfuzz.campaign.finding_commands import FindingCommands, facts_of
from policyfuzz.campaign.new_modes import NewModes
from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.target import Target
from policyfuzz.targets.trust import named_code

if TYPE_CHECKING:
    from policyfuzz.report.tensorboard import TensorBoardLog

#: Kinds of logs.
TENSORBOARD = "tensorboard"
LOGS = (TENSORBOARD,)


def check_watchers(logs: Sequence[str], on_finding: str | None) -> None:
    """Refuse what could not be done later: a kind of log that is not known or installed, an empty command."""
    for one in logs:
        if one not in LOGS:
            raise unknown_name("log", one, LOGS)
    if TENSORBOARD in logs:
        from policyfuzz.report.tensorboard import load_library

        load_library()
    if on_finding is not None and (not on_finding.strip() or "\0" in on_finding):
        raise UsageError(
            f"the command for new modes is {on_finding!r}",
            "give a command of the shell, such as 'cat >> modes.jsonl', or leave it out",
        )


@contextmanager
def watching(
    target: Target,
    logs: Sequence[str],
    on_finding: str | None,
    say: Callable[[str], None],
    say_wait: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Listener, ...]]:
    """The listeners for `logs` and for the command `on_finding`.

    When the block ends, what is still being done gets some seconds. `say` is told what goes wrong, and
    `say_wait` that there is something to wait for.
    """
    if not logs and on_finding is None:
        yield ()
        return
    commands = None if on_finding is None else FindingCommands(on_finding, say)
    log = _tensorboard_log(target, say) if TENSORBOARD in logs else None
    try:
        yield (_Watcher(target, commands, log),)
    finally:
        _close([one for one in (commands, log) if one is not None], say_wait)


def _close(watchers: "Sequence[FindingCommands | TensorBoardLog]", say_wait: Callable[[str], None]) -> None:
    """End all `watchers`. Ctrl-C ends them at once: the campaign is over, and its results stay."""
    if any(one.is_busy for one in watchers):
        say_wait("waiting some seconds for commands and pictures of new modes; Ctrl-C skips that")
    is_patient = True
    for one in watchers:
        try:
            if is_patient:
                one.close()
        except KeyboardInterrupt:
            is_patient = False
        if not is_patient:
            one.close(seconds=0.0)


def _tensorboard_log(target: Target, say: Callable[[str], None]) -> "TensorBoardLog":
    from policyfuzz.report.tensorboard import TensorBoardLog  # most campaigns do without

    return TensorBoardLog(target, say)


class _Watcher:
    """Passes events and new modes on."""

    def __init__(
        self, target: Target, commands: FindingCommands | None, log: "TensorBoardLog | None"
    ) -> None:
        self._target, self._commands, self._log = target, commands, log
        self._modes = NewModes()
        self._started: Started | None = None

    def __call__(self, event: Event) -> None:
        new = self._modes.take(event)
        if isinstance(event, Started):
            self._started = event
            if self._log is not None:
                self._log.set_known_modes(self._modes.count)
        if self._log is not None:
            self._log.take(event, [one.finding for one in new])
        if self._commands is None or self._started is None:
            return
        config, folder = self._started.config, Path(self._started.folder)
        for one in new:
            trust = bool(named_code(config.target, config.policy))
            self._commands.add(folder, facts_of(one, folder, config, self._target.inputs, trust))
        self._commands.look()
