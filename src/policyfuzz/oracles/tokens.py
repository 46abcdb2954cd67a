"""The words and signs of an oracle text, each with its place, for errors that point at it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policyfuzz.errors import UsageError
from policyfuzz.oracles.comparison import SYMBOLS

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
