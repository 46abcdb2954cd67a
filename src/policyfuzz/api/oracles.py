"""Oracle objects of this process: written as text where the language has words for them, else kept."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from typing import Any

from policyfuzz.core.errors import UsageError
from policyfuzz.core.oracle import AllOf, AnyOf, Oracle
from policyfuzz.core.target import IN_MEMORY, Target, joined, split_options
from policyfuzz.environments.nominal import NominalChecks
from policyfuzz.oracles import (
    Info,
    InfoNeverTrue,
    InfoTrue,
    NotANumber,
    OutOfSpace,
    Raised,
    Return,
    Reward,
    Terminated,
    Truncated,
    WithKind,
    parse_oracle,
)
from policyfuzz.oracles.conditions import info_signal, number_text

#: Condition to the word for it.
_WORDS: Mapping[type, str] = {
    Terminated: "terminated",
    Truncated: "truncated",
    OutOfSpace: "out_of_space",
    NotANumber: "nan",
    Raised: "exception",
}
#: What a Gymnasium simulator has to be told before it records it.
_WATCHED = (Truncated, OutOfSpace)


def split_oracle(oracle: Any) -> tuple[str, Oracle | None]:
    """`oracle` as text; an object that has no text comes with a text that records what it looks at."""
    if oracle is None:
        return "", None
    if isinstance(oracle, str):
        if not oracle.strip():
            raise UsageError(
                f"oracle is {oracle!r}", "such as 'terminated | return<100', or None for the default"
            )
        return oracle, None
    if isinstance(oracle, type) or not (hasattr(oracle, "judge") and hasattr(oracle, "kinds")):
        raise UsageError(
            f"oracle is a {type(oracle).__name__}, expected text or an object with kinds and judge",
            "such as 'terminated | return<100', or policyfuzz.Terminated() | policyfuzz.Return('<', 100)",
        )
    try:
        text = _text(oracle)
        if parse_oracle(text) == oracle:
            return text, None
    except UsageError:
        pass  # the language has no word for it
    parts = list(_parts(oracle))
    words = [_WORDS[type(part)] for part in parts if isinstance(part, _WATCHED)]
    keys = [info_signal(key) for part in parts for key in _info_keys(part)]
    return " | ".join(dict.fromkeys(["terminated", *words, *keys])), oracle


def judged_by(target: Target, oracle: Oracle) -> Target:
    """`target` with another `oracle`, an object that exists in this process only."""
    said = repr(oracle) if is_dataclass(oracle) else type(oracle).__qualname__
    base, options = split_options(target.name)
    name = base if base.startswith(f"{IN_MEMORY}:") else f"{IN_MEMORY}:{base}"
    notes = tuple(note for note in target.notes if not note.startswith("oracle: "))
    judged = replace(
        target,
        name=joined(name, {**options, "oracle": said}),
        oracle=oracle,
        notes=(*notes, f"oracle: {said}, as you asked"),
    )
    checks = target.further_checks
    if isinstance(checks, NominalChecks):
        judged = replace(judged, further_checks=replace(checks, target=judged))
    return judged


def _text(oracle: Any) -> str:
    """How the language writes `oracle`."""
    match oracle:
        case AnyOf():
            return f"({_text(oracle.first)}) | ({_text(oracle.second)})"
        case AllOf():
            return f"({_text(oracle.first)}) & ({_text(oracle.second)})"
        case WithKind():
            return f"({_text(oracle.oracle)}) as {oracle.kind}"
        case Return() | Reward() | Info():
            return f"{oracle.subject}{oracle.symbol}{number_text(oracle.number)}"
        case InfoTrue():
            return info_signal(oracle.key)
        case InfoNeverTrue():
            return f"!{info_signal(oracle.key)}"
    if type(oracle) not in _WORDS:
        raise UsageError(f"there is no word for {type(oracle).__name__}")
    return _WORDS[type(oracle)]


def _parts(oracle: Any) -> Iterator[Any]:
    """`oracle` and all oracles that it is made of."""
    yield oracle
    inner = vars(oracle).values() if hasattr(oracle, "__dict__") else ()
    for value in inner:
        if hasattr(value, "judge") and hasattr(value, "kinds"):
            yield from _parts(value)


def _info_keys(oracle: Any) -> tuple[str, ...]:
    """Keys of `info` that `oracle` itself looks at."""
    if isinstance(oracle, Info | InfoTrue | InfoNeverTrue):
        return (oracle.key,)
    return tuple(getattr(oracle, "info_keys", ()))
