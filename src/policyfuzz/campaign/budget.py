"""How long a campaign goes on, and why it stopped."""

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from policyfuzz.core.errors import UsageError
from policyfuzz.store.records import Progress

#: A time: "90s", "2m", "1h30m", a number of seconds, or a timedelta.
Duration = str | float | timedelta

_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


class StopReason(StrEnum):
    """Why a campaign stopped."""

    MAX_TIME = "max-time"
    MAX_EXECS = "max-execs"
    MAX_FINDINGS = "max-findings"
    INTERRUPTED = "interrupted"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits over the whole life of a campaign, resumed parts included. None: no limit."""

    seconds: float | None = None
    executions: int | None = None
    findings: int | None = None

    def __post_init__(self) -> None:
        limits = (
            ("max-time", self.seconds),
            ("max-execs", self.executions),
            ("max-findings", self.findings),
        )
        for name, limit in limits:
            if limit is not None and not limit > 0:
                raise UsageError(f"{name} is {limit:g}, expected more than 0")

    def spent(self, progress: Progress) -> StopReason | None:
        """The limit that has been reached, if any."""
        if self.findings is not None and progress.findings >= self.findings:
            return StopReason.MAX_FINDINGS
        if self.executions is not None and progress.executions >= self.executions:
            return StopReason.MAX_EXECS
        if self.seconds is not None and progress.seconds >= self.seconds:
            return StopReason.MAX_TIME
        return None

    def room(self, batch_size: int, executed: int, in_flight: int, to_confirm: int) -> int:
        """How many new cases may be asked for, so that what they find can still be confirmed.

        The very last execution of a budget is the exception: should it crash, it stays unconfirmed.
        """
        if self.executions is None:
            return batch_size
        free = self.executions - executed - 2 * in_flight - to_confirm
        return max(0, min(batch_size, (free + 1) // 2))

    def share_spent(self, progress: Progress) -> float | None:
        """How much is spent, from 0 to 1, of the limit that is nearest; None without a limit."""
        pairs = (
            (progress.seconds, self.seconds),
            (progress.executions, self.executions),
            (progress.findings, self.findings),
        )
        return max((min(done / limit, 1.0) for done, limit in pairs if limit is not None), default=None)


def seconds_of(duration: Duration | None) -> float | None:
    """`duration` in seconds."""
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        return float(duration)
    text = str(duration).strip().lower()
    if not isinstance(duration, str) or not re.fullmatch(f"(?:{_DURATION_PART.pattern})+", text):
        raise UsageError(
            f"{duration!r} is not a duration", 'write "90s", "2m", "1h30m", or seconds as a number'
        )
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
