import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from policyfuzz.core.visible import visible, visible_line


@given(st.text(st.characters(codec=None)))
def test_nothing_that_a_terminal_obeys_is_left(text):
    for character in visible(text):
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(st.text(st.characters(codec=None)))
def test_visible_text_can_be_encoded_and_stays_as_it_is(text):
    shown = visible(text)
    assert shown.encode().decode() == visible(shown)


def test_escapes_say_which_character_it_was():
    assert visible("a\x1b[2J\x9b\x7f\u202e\u200b\udcff\r") == r"a\x1b[2J\x9b\x7f\u202e\u200b\udcff\r"


def test_ordinary_text_is_not_changed():
    text = "line one\n\tline two, 5\N{NO-BREAK SPACE}m/s², naïve, 日本語, 🚗 \\x1b"
    assert visible(text) == text


def test_a_line_stays_one_line():
    assert visible_line("a\nb\tc\x1b") == r"a\nb\tc\x1b"
