"""Option types that several verbs share."""

import re
from pathlib import Path
from typing import Any

import click

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, written as 90s, 2m, 1h30m or 12h."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip().lower()
        if not _DURATION.fullmatch(text):
            self.fail(f"{value!r} is not a duration; write 90s, 2m, 1h30m or 12h", param, ctx)
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)([smhd])", text))


DURATION = Duration()
FOLDER = click.Path(path_type=Path)

as_json = click.option("--json", "is_json", is_flag=True, help="Print JSON on stdout.")
policy = click.option(
    "--policy", metavar="URI", help="The policy to test, e.g. acasxu:DIR. Default: the one that is shipped."
)


def format_rate(per_second: float) -> str:
    """`per_second` for a reader: 12,021/s, 0.6/s."""
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"


def format_seconds(seconds: float) -> str:
    """`seconds` for a reader: 4.2 s, 3 min 20 s, 2 h 05 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
