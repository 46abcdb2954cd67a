"""Checks a target from Python before it is fuzzed."""

import html
from collections.abc import Mapping
from typing import Any

from policyfuzz.api.subjects import Input, as_target
from policyfuzz.campaign.health import check_target, is_unhealthy
from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Diagnosis


class Diagnoses(list[Diagnosis]):
    """What a check found, good and bad; a table in notebooks."""

    @property
    def is_healthy(self) -> bool:
        """True if nothing forbids the search."""
        return not is_unhealthy(self)

    def __repr__(self) -> str:
        lines = [
            f"{one.level.upper():<9} {one.name}: {one.message}" + _hint(one, "\n            ") for one in self
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{one.level}</td><td>{html.escape(one.name)}</td>"
            f'<td style="text-align:left">{html.escape(one.message)}{html.escape(_hint(one, " "))}</td></tr>'
            for one in self
        )
        return f"<table><tbody>{rows}</tbody></table>"


def check(
    target: Any,
    policy: Any = None,
    *,
    oracle: str | None = None,
    input: Input | None = None,  # noqa: A002 - as --input on the command line
    bounds: str | float | None = None,
    horizon: int | None = None,
    options: Mapping[str, str] | None = None,
    trust: bool = False,
    episodes: int | None = None,
    seed: int = 0,
) -> Diagnoses:
    """Run random episodes and say what is wrong, with hints. The same check begins every campaign.

    See `as_target` for what the first arguments may be. Without a number of `episodes` it runs up to 1,000,
    fewer if they take over 20 seconds.
    """
    if episodes is not None and episodes < 1:
        raise UsageError(f"episodes is {episodes}, expected at least 1")
    subject = as_target(
        target,
        policy,
        oracle=oracle,
        input=input,
        bounds=bounds,
        horizon=horizon,
        options=options,
        trust=trust,
    )
    return Diagnoses(check_target(subject, episodes, seed))


def _hint(diagnosis: Diagnosis, before: str) -> str:
    return f"{before}hint: {diagnosis.hint}" if diagnosis.hint else ""
