"""The tree of an oracle text: what each part means, and the oracles that users have registered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from policyfuzz.core.errors import UsageError, blamed_on, unknown_name
from policyfuzz.core.oracle import AllOf, AnyOf, Oracle
from policyfuzz.oracles.conditions import (
    Info,
    InfoNeverTrue,
    InfoTrue,
    NotANumber,
    OutOfSpace,
    Raised,
    Return,
    Reward,
    Symbol,
    Terminated,
    Truncated,
    WithKind,
    info_signal,
    number_text,
    require_comparison,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

#: A name in this group stands for an oracle, or for something that makes one when called without arguments.
GROUP = "policyfuzz.oracles"

#: Gives the return that a share of nominal episodes, from 0 to 1, falls below.
NominalQuantile = Callable[[float], float]

#: Words that stand for an oracle on their own.
WORDS: Mapping[str, Callable[[], Oracle]] = {
    "terminated": Terminated,
    "truncated": Truncated,
    "nan": NotANumber,
    "out_of_space": OutOfSpace,
    "exception": Raised,
}

#: Words that are compared with a number.
MEASURES: Mapping[str, Callable[[Symbol, float], Oracle]] = {"return": Return, "reward": Reward}

_INFO = info_signal("")


def info_key(subject: str) -> str:
    """KEY of info.KEY; empty for every other `subject`."""
    return subject.removeprefix(_INFO) if subject.startswith(_INFO) else ""


class Part(Protocol):
    """A text, or a piece of one that has a meaning."""

    @property
    def text(self) -> str:
        """The canonical way to write it."""
        ...

    @property
    def subjects(self) -> tuple[str, ...]:
        """What it looks at, in the order of the text: words, return, reward, info.KEY."""
        ...

    def resolved(self, quantile: NominalQuantile) -> "Part":
        """The same with numbers in place of quantiles."""
        ...

    def oracle(self) -> Oracle:
        """The oracle it stands for; only after `resolved` where there are quantiles."""
        ...


@dataclass(frozen=True, slots=True)
class Word:
    """An oracle that needs no more than its name: built in, or brought by a package."""

    text: str

    @property
    def subjects(self) -> tuple[str, ...]:
        keys = () if self.text in WORDS else getattr(self.oracle(), "info_keys", ())
        return (self.text, *map(info_signal, keys))

    def resolved(self, quantile: NominalQuantile) -> "Word":
        return self

    def oracle(self) -> Oracle:
        return WORDS[self.text]() if self.text in WORDS else registered_oracle(self.text)


@dataclass(frozen=True, slots=True)
class Flag:
    """A key of `info` that is true at some step, or never."""

    key: str
    is_negated: bool

    @property
    def text(self) -> str:
        return "!" * self.is_negated + info_signal(self.key)

    @property
    def subjects(self) -> tuple[str, ...]:
        return (info_signal(self.key),)

    def resolved(self, quantile: NominalQuantile) -> "Flag":
        return self

    def oracle(self) -> Oracle:
        return InfoNeverTrue(self.key) if self.is_negated else InfoTrue(self.key)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Return, reward or a key of `info`, compared with a number."""

    subject: str  #: "return", "reward" or "info.KEY"
    symbol: Symbol
    number: float  #: between 0 and 1 for a quantile
    is_quantile: bool = False

    @property
    def text(self) -> str:
        return f"{self.subject}{self.symbol}{'q' * self.is_quantile}{number_text(self.number)}"

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.subject,)

    def resolved(self, quantile: NominalQuantile) -> "Comparison":
        if not self.is_quantile:
            return self
        number = float(quantile(self.number))
        require_comparison(self.symbol, number)
        return Comparison(self.subject, self.symbol, number)

    def oracle(self) -> Oracle:
        if self.is_quantile:
            raise UsageError(f"{self.text} needs nominal episodes", "write a number instead of the quantile")
        if self.subject in MEASURES:
            return MEASURES[self.subject](self.symbol, self.number)
        return Info(info_key(self.subject), self.symbol, self.number)


@dataclass(frozen=True, slots=True)
class Renamed:
    """A part whose findings have a name that the user chose."""

    part: Part
    name: str

    @property
    def text(self) -> str:
        inner = f"({self.part.text})" if isinstance(self.part, Joined) else self.part.text
        return f"{inner} as {self.name}"

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.part.subjects

    def resolved(self, quantile: NominalQuantile) -> "Renamed":
        return replace(self, part=self.part.resolved(quantile))

    def oracle(self) -> Oracle:
        return WithKind(self.part.oracle(), self.name)


@dataclass(frozen=True, slots=True)
class Joined:
    """Two parts or more with | or & between them."""

    sign: str
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, sign: str, parts: list[Part]) -> Part:
        """`parts` with `sign` between them; parentheses around the same sign change nothing and go."""
        flat: list[Part] = []
        for part in parts:
            flat += part.parts if isinstance(part, Joined) and part.sign == sign else [part]
        return flat[0] if len(flat) == 1 else cls(sign, tuple(flat))

    @property
    def text(self) -> str:
        return f" {self.sign} ".join(map(self._part_text, self.parts))

    def _part_text(self, part: Part) -> str:
        return f"({part.text})" if self.sign == "&" and isinstance(part, Joined) else part.text

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(subject for part in self.parts for subject in part.subjects))

    def resolved(self, quantile: NominalQuantile) -> "Joined":
        return replace(self, parts=tuple(part.resolved(quantile) for part in self.parts))

    def oracle(self) -> Oracle:
        join = AnyOf if self.sign == "|" else AllOf
        return reduce(join, [part.oracle() for part in self.parts])


def registered_names() -> tuple[str, ...]:
    """The names that installed packages give to their oracles."""
    return tuple(sorted(_entries().names))


def registered_oracle(name: str) -> Oracle:
    """The oracle that an installed package calls `name`."""
    entry = _entry(name)
    with blamed_on(f"oracle {name}"):
        found = entry.load()
        # a class has the methods of an oracle and is none yet
        oracle = found if hasattr(found, "judge") and not isinstance(found, type) else found()
    if not (hasattr(oracle, "judge") and hasattr(oracle, "kinds")):
        raise UsageError(
            f"oracle {name} ({entry.value}) is {type(oracle).__name__}, expected something that judges",
            f"the entry point in group {GROUP} names an oracle or a function that makes one",
        )
    return oracle  # type: ignore[no-any-return]


def _entries() -> "EntryPoints":
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return entry_points(group=GROUP)


def _entry(name: str) -> "EntryPoint":
    entries = {entry.value: entry for entry in _entries().select(name=name)}
    if not entries:
        raise unknown_name("oracle", name, registered_names())
    if len(entries) > 1:
        raise UsageError(
            f"several installed packages bring an oracle called {name}: {', '.join(sorted(entries))}",
            "uninstall all of them but one",
        )
    return next(iter(entries.values()))
