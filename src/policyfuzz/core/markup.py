"""Small pieces of HTML for notebooks. Every text is escaped: names, kinds and paths come from strangers."""

import html
import math
from collections.abc import Iterable, Mapping, Sequence

from policyfuzz.core.visible import visible, visible_line

#: Characters of a text in one cell.
_LONGEST = 1000
_LEFT = ' style="text-align:left"'


def escaped(value: object) -> str:
    """`value` as text in one line that is not too long; numbers short, and nothing for NaN."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    text = str(value)
    return html.escape(visible_line(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."))


def paragraph(text: object) -> str:
    """All of `text`, its lines kept apart."""
    lines = visible(str(text)).split("\n")
    return f"<p>{'<br>'.join(map(html.escape, lines))}</p>"


def heading(text: object) -> str:
    """One line that stands out."""
    return f"<p><b>{escaped(text)}</b></p>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a head; texts stand on the left, numbers on the right. Nothing if there are no rows."""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    if not body:
        return ""
    first = "".join(f"<th>{escaped(name)}</th>" for name in head)
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def facts(values: Mapping[str, object]) -> str:
    """A table of names and values, without those that are empty."""
    rows = "".join(
        f"<tr><th{_LEFT}>{escaped(name)}</th><td{_LEFT}>{text}</td></tr>"
        for name, value in values.items()
        if (text := "" if value is None else escaped(value))
    )
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def _cell(value: object) -> str:
    return f"<td{_LEFT if isinstance(value, str) else ''}>{escaped('' if value is None else value)}</td>"
