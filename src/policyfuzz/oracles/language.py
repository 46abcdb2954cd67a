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
from dataclasses import dataclass, field

from policyfuzz.core.errors import UsageError
from policyfuzz.core.oracle import Oracle
from policyfuzz.oracles.conditions import SYMBOLS
from policyfuzz.oracles.tree import (
    WORDS,
    Compared,
    Flag,
    Joined,
    NominalQuantile,
    Part,
    Renamed,
    Word,
    registered_names,
)

_WORD = re.compile(r"[\w.%+/-]+")
_SIGN = re.compile(r"<=|>=|==|[<>|&!()]")
_SPACE = re.compile(r"\s*")

#: What people write who know other languages, and how it is written here.
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


def unreadable(text: str, token: Token, what: str, hint: str = "") -> UsageError:
    """The error that shows where in `text` it is, and says `what` is wrong there."""
    line = re.sub(r"\s", " ", text)
    mark = " " * token.start + "^" * max(len(token.text), 1)
    return UsageError(f"cannot read the oracle: {what}\n  {line}\n  {mark}", hint)


def tokens(text: str) -> Iterator[Token]:
    """All words and signs of `text` in order, and its end."""
    place = _after_space(text, 0)
    while place < len(text):
        token = _token(text, place)
        yield token
        place = _after_space(text, place + len(token.text))
    yield Token("", len(text), is_word=False)


def _token(text: str, place: int) -> Token:
    foreign = next((sign for sign in _FOREIGN if text.startswith(sign, place)), None)
    if foreign is not None and not text.startswith("==", place):
        token = Token(foreign, place, is_word=False)
        raise unreadable(text, token, f"{foreign} has no meaning here", _FOREIGN[foreign])
    for pattern in (_WORD, _SIGN):
        found = pattern.match(text, place)
        if found:
            return Token(found[0], place, is_word=pattern is _WORD)
    hint = "an oracle is made of words, numbers, comparisons, |, &, ! and parentheses"
    raise unreadable(text, Token(text[place], place, is_word=False), f"unexpected {text[place]!r}", hint)


def _after_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space else place


_MEASURES = ("return", "reward")
_INFO = "info."

#: Words of other languages and packages, and how it is said here.
_SYNONYMS = {
    "or": "write | for or",
    "and": "write & for and",
    "not": "write !info.KEY where a key of info must have been true",
    "done": "did you mean 'terminated'?",
    "timeout": "did you mean 'truncated'?",
    "error": "did you mean 'exception'?",
}


def read(text: str) -> Part:
    """The tree of `text`; a UsageError points at what cannot be read."""
    reader = _Reader(text, list(tokens(text)))
    part = reader.either()
    if reader.next.text:
        raise reader.error("expected |, &, as or the end of the text", _after_atom(reader.next))
    return part


@dataclass
class _Reader:
    """Goes through the tokens from left to right."""

    text: str
    tokens: list[Token]
    place: int = field(default=0)

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def error(self, what: str, hint: str = "") -> UsageError:
        """The error that points at the next token."""
        return unreadable(self.text, self.next, what, hint)

    def take(self) -> Token:
        token = self.next
        self.place += 1
        return token

    def takes(self, sign: str) -> bool:
        """True, and one further, where the next token is `sign`."""
        if self.next.text != sign:
            return False
        self.place += 1
        return True

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
            part = self.either()
            if not self.takes(")"):
                raise self.error("expected )", _after_atom(self.next))
            return part
        if self.takes("!"):
            return self.negated()
        if not self.next.is_word:
            known = ", ".join(WORDS)
            raise self.error(
                "expected an oracle", f"such as {known}, return<X, reward<X, info.KEY or !info.KEY"
            )
        return self.word()

    def negated(self) -> Part:
        if not _is_key(self.next):
            hint = (
                "write truncated instead"
                if self.next.text == "terminated"
                else "for example: !info.is_success"
            )
            raise self.error("only a key of info can be negated", hint)
        flag = Flag(_key(self.take()), is_negated=True)
        if self.next.is_symbol:
            raise self.error(
                "a comparison cannot be negated", "turn it round: info.KEY>=X for not info.KEY<X"
            )
        return flag

    def word(self) -> Part:
        token, follower = self.next, self.tokens[self.place + 1]
        if token.text in _MEASURES or _is_key(token):
            self.take()
            return self.compared(token)
        if token.text in WORDS or token.text in registered_names():
            self.take()
            return Word(token.text)
        if token.text in ("info", _INFO):
            raise self.error("expected a key of info", "for example: info.collision")
        raise self.error(f"unknown word {token.text!r}", _hint(token.text, is_compared=follower.is_symbol))

    def compared(self, subject: Token) -> Part:
        """What follows after return, reward or a key of info."""
        symbol = self.next.text
        for known in SYMBOLS:
            if symbol == known:
                self.take()
                number, is_quantile = self.number(subject.text)
                return Compared(subject.text, known, number, is_quantile)
        if subject.text in _MEASURES:
            hint = f"for example: {subject.text}<-100"
            raise self.error(f"expected one of {', '.join(SYMBOLS)} after {subject.text}", hint)
        return Flag(_key(subject), is_negated=False)

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


def _is_key(token: Token) -> bool:
    return token.text.startswith(_INFO) and token.text != _INFO


def _key(token: Token) -> str:
    return token.text.removeprefix(_INFO)


def _after_atom(token: Token) -> str:
    """The hint for a token that stands where |, & or the end must be."""
    if token.text == ")":
        return "there is no ( that it closes"
    if token.is_symbol:
        return "only return, reward and info.KEY can be compared, each with one number"
    return _SYNONYMS.get(token.text.lower(), "")


def _number_hint(text: str, subject: str) -> str:
    if text.endswith("%"):
        return f"a quantile of nominal returns is written q{text}"
    if text.lower() in ("true", "false") and subject not in _MEASURES:
        return f"write {subject} for true, and !{subject} for never true"
    return "numbers are written as in Python: 100, -99.5, 1e-3"


def _hint(word: str, is_compared: bool) -> str:
    """What was meant by an unknown `word`, as far as one can tell."""
    if word.lower() in _SYNONYMS:
        return _SYNONYMS[word.lower()]
    known = _MEASURES if is_compared else (*WORDS, *registered_names(), *_MEASURES)
    close = difflib.get_close_matches(word.lower(), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if word[0].isalpha():
        return f"known: {', '.join(known)}; a key of info is written info.{word}"
    return "the number comes last, for example: reward<-100"


def parse(text: str, quantile: NominalQuantile | None = None) -> Oracle:
    """The oracle that `text` describes; `quantile` gives the numbers for return<q5% and the like."""
    return _filled_in(text, quantile).oracle()


def resolved(text: str, quantile: NominalQuantile | None = None) -> str:
    """The canonical `text` with numbers in place of quantiles: the same oracle, wherever it is read."""
    return _filled_in(text, quantile).text


def canonical(text: str) -> str:
    """One way to write what `text` says, without needless spaces and parentheses; no comma, no colon."""
    return read(text).text


def info_keys(text: str) -> tuple[str, ...]:
    """The keys of `info` that a simulator must record for this oracle, in the order of the text."""
    return read(text).keys


def _filled_in(text: str, quantile: NominalQuantile | None) -> Part:
    def lacking(share: float) -> float:
        raise UsageError(
            f"the oracle {text!r} asks for a quantile (q{share}) of nominal returns, and there are none",
            "write a number instead",
        )

    return read(text).resolved(quantile or lacking)
