"""From the text of an oracle to its tree, with errors that point at the place.

either  = both {"|" both}
both    = named {"&" named}
named   = atom ["as" word {word}]
atom    = "(" either ")" | "!" info.KEY | word | (return | reward | info.KEY) [comparison number]
"""

import difflib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from policyfuzz.core.errors import UsageError
from policyfuzz.core.oracle import Oracle
from policyfuzz.oracles.conditions import SYMBOLS
from policyfuzz.oracles.tree import (
    MEASURES,
    WORDS,
    Comparison,
    Flag,
    Joined,
    NominalQuantile,
    Part,
    Renamed,
    Word,
    info_key,
    registered_names,
)

#: Parentheses inside of each other, and conditions in one text: far more than anybody writes by hand.
_MOST_LEVELS, _MOST_CONDITIONS, _MOST_CHARACTERS = 50, 100, 10_000
_MOST_SHOWN = 200
_LONG_HINT = "register an oracle of your own, in Python: see docs/oracles.md"

_TOKEN = re.compile(
    r"(?P<foreign>\|\||&&|!=|=<|=>|=(?!=)|≤|≥)"
    r"|(?P<word>[\w.%+/-]+)|(?P<sign><=|>=|==|[<>|&!()])|(?P<unexpected>\S)"
)

#: Signs of other languages, and how to write them here.
_FOREIGN = {
    "||": "write | for or",
    "&&": "write & for and",
    "!=": "write (info.KEY<X | info.KEY>X) for unequal",
    "=<": "write <= for at most",
    "=>": "write >= for at least",
    "=": "write == for equal",
    "≤": "write <= for at most",
    "≥": "write >= for at least",
}
#: Words of other languages and packages, and how to write them here.
_SYNONYMS = {
    "or": "write | for or",
    "and": "write & for and",
    "not": "write !info.KEY where a key of info must have been true",
    "done": "did you mean 'terminated'?",
    "timeout": "did you mean 'truncated'?",
    "error": "did you mean 'exception'?",
}


def parse(text: str, quantile: NominalQuantile | None = None) -> Oracle:
    """The oracle that `text` describes; `quantile` gives the numbers for return<q5% and the like."""
    return _resolved_tree(text, quantile).oracle()


def resolved(text: str, quantile: NominalQuantile | None = None) -> str:
    """The canonical `text` with numbers in place of quantiles: the same oracle, wherever it is read."""
    return _resolved_tree(text, quantile).text


def canonical(text: str) -> str:
    """One way to write what `text` says, without needless spaces and parentheses; no comma, no colon."""
    return read(text).text


def looks_at(text: str) -> tuple[str, ...]:
    """What the oracle looks at, in the order of the text: words, return, reward, info.KEY.

    A word that a package registered is followed by the keys of `info` that its oracle asks for.
    """
    return read(text).subjects


def info_keys(text: str) -> tuple[str, ...]:
    """The keys of `info` that a simulator must record for this oracle, in the order of the text."""
    return tuple(key for key in map(info_key, looks_at(text)) if key)


def read(text: str) -> Part:
    """The tree of `text`; a UsageError points at what cannot be read."""
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(
            f"the oracle has {len(text):,} characters, expected {_MOST_CHARACTERS:,} at most", _LONG_HINT
        )
    reader = _Reader(text, list(_tokens(text)))
    part = reader.either()
    if reader.next.text:
        raise reader.error("expected |, &, as or the end of the text", _separator_hint(reader.next))
    return part


def _resolved_tree(text: str, quantile: NominalQuantile | None) -> Part:
    def refuse(share: float) -> float:
        raise UsageError(
            f"the oracle {text!r} asks for a quantile (q{share}) of nominal returns, and there are none",
            "write a number instead",
        )

    return read(text).resolved(quantile or refuse)


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a sign; the end of the text is one too, and is empty."""

    text: str
    start: int
    is_word: bool

    @property
    def is_symbol(self) -> bool:
        """True for a sign that compares."""
        return self.text in SYMBOLS


def _unreadable(text: str, token: Token, what: str, hint: str = "") -> UsageError:
    """The error that shows where in `text` it is, and says `what` is wrong there."""
    # of a long text, only what is near
    first = 0 if len(text) <= _MOST_SHOWN else max(token.start - _MOST_SHOWN // 2, 0)
    line = re.sub(r"\s", " ", text[first : first + _MOST_SHOWN])
    mark = " " * (token.start - first) + "^" * min(max(len(token.text), 1), _MOST_SHOWN)
    return UsageError(f"cannot read the oracle: {what}\n  {line}\n  {mark}", hint)


def _tokens(text: str) -> Iterator[Token]:
    """All words and signs of `text` in order, and its end."""
    for found in _TOKEN.finditer(text):
        token = Token(found[0], found.start(), is_word=found.lastgroup == "word")
        if found.lastgroup == "foreign":
            raise _unreadable(text, token, f"{token.text} has no meaning here", _FOREIGN[token.text])
        if found.lastgroup == "unexpected":
            hint = "an oracle is made of words, numbers, comparisons, |, &, ! and parentheses"
            raise _unreadable(text, token, f"unexpected {token.text!r}", hint)
        yield token
    yield Token("", len(text), is_word=False)


@dataclass
class _Reader:
    """Goes through the tokens from left to right; a method for each line of the grammar."""

    text: str
    tokens: list[Token]
    place: int = 0
    level: int = 0  #: of open parentheses
    conditions: int = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def error(self, what: str, hint: str = "") -> UsageError:
        """The error that points at the next token."""
        return _unreadable(self.text, self.next, what, hint)

    def take(self) -> Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def takes(self, sign: str) -> bool:
        """True where the next token is `sign`, which is taken then."""
        is_next = self.next.text == sign
        self.place += is_next
        return is_next

    def either(self) -> Part:
        parts = [self.both()]
        while self.takes("|"):
            parts.append(self.both())
        return Joined.of("|", parts)

    def both(self) -> Part:
        parts = [self.named()]
        while self.takes("&"):
            parts.append(self.named())
        return Joined.of("&", parts)

    def named(self) -> Part:
        part = self.atom()
        if not self.takes("as"):
            return part
        if not self.next.is_word:
            raise self.error("expected a name after as", "for example: reward<=-100 as crash")
        words = []
        while self.next.is_word and self.next.text != "as":
            words.append(self.take().text)
        if not words or self.next.text == "as":
            raise self.error("expected one name", "for example: reward<=-100 as crash")
        return Renamed(part.part if isinstance(part, Renamed) else part, " ".join(words))

    def atom(self) -> Part:
        if self.takes("("):
            self.level += 1
            if self.level > _MOST_LEVELS:
                raise self.error(f"more than {_MOST_LEVELS} parentheses are open", _LONG_HINT)
            part = self.either()
            if not self.takes(")"):
                raise self.error("expected )", _separator_hint(self.next))
            self.level -= 1
            return part
        self.conditions += 1
        if self.conditions > _MOST_CONDITIONS:
            raise self.error(f"more than {_MOST_CONDITIONS} conditions", _LONG_HINT)
        if self.takes("!"):
            return self.negated()
        if not self.next.is_word:
            known = ", ".join(WORDS)
            raise self.error(
                "expected an oracle", f"such as {known}, return<X, reward<X, info.KEY or !info.KEY"
            )
        return self.word()

    def negated(self) -> Part:
        if not info_key(self.next.text):
            hint = (
                "write truncated instead"
                if self.next.text == "terminated"
                else "for example: !info.is_success"
            )
            raise self.error("only a key of info can be negated", hint)
        flag = Flag(info_key(self.take().text), is_negated=True)
        if self.next.is_symbol:
            raise self.error(
                "a comparison cannot be negated", "turn it round: info.KEY>=X for not info.KEY<X"
            )
        return flag

    def word(self) -> Part:
        token, follower = self.next, self.tokens[self.place + 1]
        if token.text in MEASURES or info_key(token.text):
            self.take()
            return self.compared(token)
        if token.text in WORDS or token.text in registered_names():
            self.take()
            return Word(token.text)
        if token.text in ("info", "info."):
            raise self.error("expected a key of info", "for example: info.collision")
        raise self.error(
            f"unknown word {token.text!r}", _word_hint(token.text, is_compared=follower.is_symbol)
        )

    def compared(self, subject: Token) -> Part:
        """What follows after return, reward or a key of info."""
        for symbol in SYMBOLS:
            if self.takes(symbol):
                number, is_quantile = self.number(subject.text)
                return Comparison(subject.text, symbol, number, is_quantile)
        if subject.text in MEASURES:
            hint = f"for example: {subject.text}<-100"
            raise self.error(f"expected one of {', '.join(SYMBOLS)} after {subject.text}", hint)
        return Flag(info_key(subject.text), is_negated=False)

    def number(self, subject: str) -> tuple[float, bool]:
        """A number, and whether it is the share of a quantile."""
        text = self.next.text
        if text.startswith("q"):
            return self.quantile(subject), True
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.error("expected a number", _number_hint(text, subject))
        self.take()
        return number, False

    def quantile(self, subject: str) -> float:
        text = self.next.text[1:]
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = math.nan
        if not 0 <= share <= 1:
            hint = (
                f"did you mean q{text}%?"
                if 1 < share <= 100 and text[-1] != "%"
                else "for example: q5% or q0.05"
            )
            raise self.error("expected a quantile between q0% and q100%", hint)
        if subject != "return":
            raise self.error(f"{subject} has no quantiles", "only return can be compared with a quantile")
        self.take()
        return share


def _separator_hint(token: Token) -> str:
    """The hint for a token that stands where |, & or the end must be."""
    if token.text == ")":
        return "there is no ( that it closes"
    if token.is_symbol:
        return "only return, reward and info.KEY can be compared, each with one number"
    return _SYNONYMS.get(token.text.lower(), "")


def _number_hint(text: str, subject: str) -> str:
    if text.endswith("%"):
        return f"a quantile of nominal returns is written q{text}"
    if text.lower() in ("true", "false") and subject not in MEASURES:
        return f"write {subject} for true, and !{subject} for never true"
    return "numbers are written as in Python: 100, -99.5, 1e-3"


def _word_hint(word: str, is_compared: bool) -> str:
    """What an unknown `word` probably means."""
    if word.lower() in _SYNONYMS:
        return _SYNONYMS[word.lower()]
    known = MEASURES if is_compared else (*WORDS, *registered_names(), *MEASURES)
    close = difflib.get_close_matches(word.lower(), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if word[0].isalpha():
        return f"known: {', '.join(known)}; a key of info is written info.{word}"
    return "the number comes last, for example: reward<-100"
