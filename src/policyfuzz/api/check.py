"""Checks a target from Python before it is fuzzed."""

import html
from collections.abc import Iterable, Mapping
from typing import Any

from policyfuzz.api.subjects import Input, as_target
from policyfuzz.campaign.health import check_target, is_unhealthy
from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import Dimension, InputSpace
from policyfuzz.core.oracle import Oracle
from policyfuzz.core.own_reset import OwnReset
from policyfuzz.core.target import Diagnosis, Target

#: Names of actions that a line has room for.
_MOST_NAMES = 8


class Diagnoses(list[Diagnosis]):
    """What a check found, good and bad; a table in notebooks."""

    def __init__(self, found: Iterable[Diagnosis] = (), target: Target | None = None) -> None:
        super().__init__(found)
        self.target = target  #: that was checked

    @property
    def is_healthy(self) -> bool:
        """True if nothing forbids the search."""
        return not is_unhealthy(self)

    def __repr__(self) -> str:
        lines = [
            f"{one.level.upper():<9} {one.name}: {one.message}" + _hint(one, "\n            ") for one in self
        ]
        return "\n".join([*self._about(), *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{one.level}</td><td>{html.escape(one.name)}</td>"
            f'<td style="text-align:left">{html.escape(one.message)}{html.escape(_hint(one, " "))}</td></tr>'
            for one in self
        )
        about = "<br>".join(map(html.escape, self._about()))
        return f"<p>{about}</p><table><tbody>{rows}</tbody></table>"

    def _about(self) -> list[str]:
        return [] if self.target is None else target_lines(self.target)


def check(
    target: Any,
    policy: Any = None,
    *,
    oracle: str | Oracle | None = None,
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
    return Diagnoses(check_target(subject, episodes, seed), subject)


def target_lines(target: Target) -> list[str]:
    """What is tested, what is varied and what counts as a crash, line by line."""
    return [
        f"{target.name}: policy {target.policy_name}, horizon {target.horizon} steps",
        *(f"  {note}" for note in target.notes),
        *(f"  input {names}: {what}" for names, what in _input_lines(target.inputs, target.own_reset)),
        f"  crash kinds: {', '.join(target.oracle.kinds)}",
        f"  actions: {_actions_line(target.actions)}",
        f"  solvable inputs only: {'yes' if target.solvable else 'no, the target has no test of that'}",
    ]


def _actions_line(actions: ActionSpace | None) -> str:
    if actions is None:
        return "cannot be replaced by others, so triage finds no witnesses"
    if actions.is_whole.all() and len(actions.low) == 1:
        names = [macro.name for macro in actions.macros]
        shown = names if len(names) <= _MOST_NAMES else [*names[:_MOST_NAMES], "..."]
        return f"{len(names)} choices, {', '.join(shown)}"
    return f"{len(actions.low)} numbers" + (f", {', '.join(actions.names)}" if actions.names else "")


def _input_lines(space: InputSpace, own: OwnReset | None) -> list[tuple[str, str]]:
    """Names and ranges of the inputs, and what the own reset draws; those of one range together."""
    alike: dict[str, list[str]] = {}
    for dimension in space.dimensions:
        if isinstance(options := getattr(dimension, "options", None), tuple):
            bounds = " or ".join(filter(None, (", ".join(options[:-1]), options[-1])))
        else:
            bounds = f"{dimension.describe(dimension.low)} to {dimension.describe(dimension.high)}"
        what = f"{dimension.kind}, {bounds} {dimension.unit}".rstrip() + _own_range(dimension, own)
        alike.setdefault(what, []).append(dimension.name)
    return [
        (
            ", ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]} ... {names[-1]} ({len(names)})",
            what,
        )
        for what, names in alike.items()
    ]


def _own_range(dimension: Dimension, own: OwnReset | None) -> str:
    """What the own reset draws of `dimension`."""
    known = None if own is None or dimension.kind in ("seed", "choice") else own.ranges.get(dimension.name)
    return "" if known is None else f" (own reset: {known.text})"


def _hint(diagnosis: Diagnosis, before: str) -> str:
    return f"{before}hint: {diagnosis.hint}" if diagnosis.hint else ""
