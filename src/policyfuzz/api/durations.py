"""How long: a text, seconds, or a timedelta."""

import re
from datetime import timedelta

from policyfuzz.core.errors import UsageError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")

Duration = str | float | timedelta


def seconds_of(duration: Duration | None) -> float | None:
    """`duration` in seconds: "90s", "2m", "1h30m", a number of seconds, or a timedelta."""
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        return float(duration)
    text = str(duration).strip().lower()
    if not isinstance(duration, str) or not re.fullmatch(f"(?:{_PART.pattern})+", text):
        raise UsageError(
            f"{duration!r} is not a duration", 'write "90s", "2m", "1h30m", or seconds as a number'
        )
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
