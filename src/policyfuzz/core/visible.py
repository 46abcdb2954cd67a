"""Text from strangers as a terminal may show it: exception texts, names, tracebacks, other people's files."""

#: Characters that are not printable, and do no harm.
_HARMLESS = "\n\t\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}"


def visible(text: str) -> str:
    """`text` with an escape (backslash, x1b) for all that a terminal would obey, hide or reorder.

    That is control characters except newline and tab, direction marks, characters without a width, line
    separators and lone surrogates, which cannot be printed at all.
    """
    if text.isprintable():
        return text
    # each character is looked at once, however often it occurs: a stranger's text may have millions
    harmful = (one for one in set(text) if not (one.isprintable() or one in _HARMLESS))
    return text.translate({ord(one): _escape(one) for one in harmful})


def visible_line(text: str) -> str:
    """The same for a text that must stay on one line."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
