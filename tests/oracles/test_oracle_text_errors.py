import pytest

from policyfuzz.core.errors import UsageError
from policyfuzz.oracles import parse_oracle
from policyfuzz.oracles.language import read


@pytest.mark.parametrize(
    ("text", "place", "what", "hint"),
    [
        ("terminatd", "^^^^^^^^^", "unknown word 'terminatd'", "did you mean 'terminated'?"),
        ("nan | Truncated", "      ^^^^^^^^^", "unknown word 'Truncated'", "did you mean 'truncated'?"),
        ("retrun<4", "^^^^^^", "unknown word 'retrun'", "did you mean 'return'?"),
        ("speed<4", "^^^^^", "unknown word 'speed'", "info.speed"),
        ("is_success", "^^^^^^^^^^", "unknown word 'is_success'", "info.is_success"),
        ("timeout", "^^^^^^^", "unknown word 'timeout'", "'truncated'"),
        ("5<reward", "^", "unknown word '5'", "reward<-100"),
        ("reward", "      ^", "expected one of <, <=, >, >=, == after reward", "reward<-100"),
        ("return<abc", "       ^^^", "expected a number", "as in Python"),
        ("return<inf", "       ^^^", "expected a number", "as in Python"),
        ("return<5%", "       ^^", "expected a number", "written q5%"),
        ("return<q5", "       ^^", "expected a quantile", "did you mean q5%?"),
        ("return<q500%", "       ^^^^^", "expected a quantile", "q5% or q0.05"),
        ("reward<q5%", "       ^^^", "reward has no quantiles", "only return"),
        ("info.x<true", "       ^^^^", "expected a number", "!info.x"),
        ("info.x=3", "      ^", "= has no meaning", "write =="),
        ("info.x != 3", "       ^^", "!= has no meaning", "info.KEY<X | info.KEY>X"),
        ("info.", "^^^^^", "expected a key of info", "info.collision"),
        ("!terminated", " ^^^^^^^^^^", "only a key of info", "truncated"),
        ("!(info.x)", " ^", "only a key of info", "!info.is_success"),
        ("!info.x<3", "       ^", "a comparison cannot be negated", "info.KEY>=X"),
        ("terminated or nan", "           ^^", "expected |, &, as or the end", "write | for or"),
        ("terminated || nan", "           ^^", "|| has no meaning", "write | for or"),
        ("terminated<5", "          ^", "expected |, &, as or the end", "only return, reward and info.KEY"),
        ("(nan", "    ^", "expected )", ""),
        ("nan)", "   ^", "expected |, &, as or the end", "no ( that it closes"),
        ("nan as", "      ^", "expected a name after as", "as crash"),
        ("nan as a as b", "         ^^", "expected one name", "as crash"),
        ("nan |", "     ^", "expected an oracle", "terminated, truncated"),
        ("", "^", "expected an oracle", "terminated, truncated"),
        ("nan,exception", "   ^", "unexpected ','", "|, &"),
        ("py:mine:oracle", "  ^", "unexpected ':'", "|, &"),
    ],
)
def test_an_error_points_at_the_place_and_says_what_was_expected(text, place, what, hint):
    with pytest.raises(UsageError) as caught:
        parse_oracle(text)
    message, line, mark = caught.value.message.split("\n")
    assert what in message
    assert (line, mark) == (f"  {text}", f"  {place}")
    assert hint in caught.value.hint


def test_the_place_is_right_where_the_text_has_several_lines():
    with pytest.raises(UsageError) as caught:
        parse_oracle("nan |\n\tterminatd")
    _, line, mark = caught.value.message.split("\n")
    assert line == "  nan |  terminatd"
    assert mark.index("^") == line.index("terminatd")


@pytest.mark.parametrize(
    "text",
    ["(" * 5000, "(" * 60 + "nan" + ")" * 60, " | ".join(["terminated"] * 101), "nan" + " " * 20_000],
)
def test_text_beyond_all_bounds_is_refused(text):
    with pytest.raises(UsageError) as caught:
        read(text)
    assert "more than" in str(caught.value) or "characters" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_text_within_the_bounds_is_read():
    assert read("(" * 50 + "nan" + ")" * 50).text == "nan"
    assert len(read(" | ".join(f"reward<{number}" for number in range(100))).parts) == 100
