from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import UsageError
from policyfuzz.oracles import (
    AllOf,
    AnyOf,
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
    canonical,
    info_keys,
    looks_at,
    parse_oracle,
    resolved,
)

some_examples = settings(max_examples=200, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)

symbols = st.sampled_from(["<", "<=", ">", ">=", "=="])
spaces = st.sampled_from(["", " ", "  "])
numbers = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-1000, 1000)).map(repr)


def compared(subject):
    return st.tuples(st.just(subject), spaces, symbols, spaces, numbers).map("".join)


atoms = st.one_of(
    st.sampled_from(["terminated", "truncated", "nan", "out_of_space", "exception"]),
    st.sampled_from(["info.flag", "!info.flag", "! info.speed"]),
    st.sampled_from(["return", "reward", "info.speed"]).flatmap(compared),
)


def larger(texts):
    joined = st.tuples(texts, spaces, st.sampled_from("|&"), spaces, texts).map("".join)
    return st.one_of(joined, texts.map("({})".format), texts.map("({}) as off  road".format))


texts = st.recursive(atoms, larger, max_leaves=8)


@pytest.mark.parametrize(
    ("text", "oracle"),
    [
        ("terminated", Terminated()),
        ("truncated", Truncated()),
        ("nan", NotANumber()),
        ("out_of_space", OutOfSpace()),
        ("exception", Raised()),
        ("return<100", Return("<", 100.0)),
        ("return <= -1e3", Return("<=", -1000.0)),
        ("reward<-50", Reward("<", -50.0)),
        ("reward > +.5", Reward(">", 0.5)),
        ("info.collision", InfoTrue("collision")),
        ("!info.is_success", InfoNeverTrue("is_success")),
        ("info.speed>=3", Info("speed", ">=", 3.0)),
        ("info.lives == 0", Info("lives", "==", 0.0)),
        ("info.TimeLimit.truncated", InfoTrue("TimeLimit.truncated")),
        ("info.eval/score<1", Info("eval/score", "<", 1.0)),
        ("reward<=-99.5 as crash", WithKind(Reward("<=", -99.5), "crash")),
        ("terminated as fell  over", WithKind(Terminated(), "fell over")),
        ("(nan|exception) as broken", WithKind(AnyOf(NotANumber(), Raised()), "broken")),
        ("nan|exception as broken", AnyOf(NotANumber(), WithKind(Raised(), "broken"))),
        ("(nan as a) as b", WithKind(NotANumber(), "b")),
    ],
)
def test_a_text_stands_for_its_oracle(text, oracle):
    assert parse_oracle(text) == oracle


def test_and_binds_tighter_than_or():
    a, b, c = Terminated(), NotANumber(), Raised()
    assert parse_oracle("terminated | nan & exception") == AnyOf(a, AllOf(b, c))
    assert parse_oracle("terminated & nan | exception") == AnyOf(AllOf(a, b), c)
    assert parse_oracle("(terminated | nan) & exception") == AllOf(AnyOf(a, b), c)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("  terminated|truncated ", "terminated | truncated"),
        ("(nan) | ((exception))", "nan | exception"),
        ("nan | (exception | (terminated))", "nan | exception | terminated"),
        ("(nan | exception) & terminated", "(nan | exception) & terminated"),
        ("(nan & exception) | terminated", "nan & exception | terminated"),
        ("(nan & exception) as off   road", "(nan & exception) as off road"),
        ("return < 100.0", "return<100"),
        ("return<-1_000.50", "return<-1000.5"),
        ("return<q5%", "return<q0.05"),
        ("! info.done", "!info.done"),
    ],
)
def test_there_is_one_way_to_write_it(text, short):
    assert canonical(text) == short


@some_examples
@given(texts)
def test_the_canonical_text_means_the_same_and_stays_as_it_is(text):
    short = canonical(text)
    assert parse_oracle(short) == parse_oracle(text)
    assert canonical(short) == short
    assert not set(short) & set(",:")


@some_examples
@given(seeds, texts, texts)
def test_composition_keeps_its_laws(random_episodes, seed, one, two):
    batch = random_episodes(seed)
    first: Any = parse_oracle(one)
    second: Any = parse_oracle(two)
    either, both = first | second, first & second
    crashed = first.judge(batch).crashed, second.judge(batch).crashed
    np.testing.assert_array_equal(either.judge(batch).crashed, crashed[0] | crashed[1])
    np.testing.assert_array_equal(either.judge(batch).crashed, (second | first).judge(batch).crashed)
    np.testing.assert_array_equal(both.judge(batch).crashed, crashed[0] & crashed[1])
    np.testing.assert_array_equal(both.judge(batch).steps, (second & first).judge(batch).steps)
    np.testing.assert_array_equal(either.judge(batch).steps, (second | first).judge(batch).steps)


@some_examples
@given(seeds, texts, st.sampled_from([0.0, 1.0, -1e9, np.nan, np.inf]), st.integers(0, 3))
def test_what_is_behind_the_end_never_matters(
    random_episodes, with_padding, seed, text, value, further_steps
):
    batch = random_episodes(seed)
    plain, padded = (
        parse_oracle(text).judge(each) for each in (batch, with_padding(batch, value, further_steps))
    )
    np.testing.assert_array_equal(plain.kinds, padded.kinds)
    np.testing.assert_array_equal(plain.steps, padded.steps)
    fired = plain.crashed
    assert (plain.steps[fired] < batch.lengths[fired]).all()


@settings(some_examples, max_examples=100)
@given(st.text("terminaduclx_wo.rsf0159q%<>=!&|() ", max_size=30))
@example("((((")
@example("!")
@example("return<q")
def test_any_text_is_read_or_refused_with_a_place(text):
    refused = ""
    try:
        parse_oracle(text)
    except UsageError as error:
        refused = error.message
    assert not refused or "^" in refused or "nominal returns" in refused


def test_the_keys_to_record_are_named_once_each_in_order():
    text = "info.b & !info.a | (info.b>3 | return<3 & info.TimeLimit.truncated) as late"
    assert info_keys(text) == ("b", "a", "TimeLimit.truncated")
    assert info_keys("terminated | return<q1%") == ()


@pytest.mark.parametrize("share", ["q5%", "q0.05", "q5.0%"])
def test_a_quantile_is_filled_in(share):
    asked = []

    def quantile(fraction):
        asked.append(fraction)
        return -12.25

    assert resolved(f"terminated|return < {share}", quantile) == "terminated | return<-12.25"
    assert parse_oracle(f"return<{share}", quantile) == Return("<", -12.25)
    assert asked == [0.05, 0.05]


def test_nominal_episodes_are_not_asked_for_where_there_is_no_quantile():
    def quantile(fraction):
        raise AssertionError

    assert resolved("return<5", quantile) == "return<5"
    assert resolved("return<5") == "return<5"


def test_a_quantile_without_nominal_episodes_is_refused():
    with pytest.raises(UsageError, match=r"quantile \(q0.05\) of nominal returns"):
        parse_oracle("return<q5%")
    with pytest.raises(UsageError, match="finite"):
        parse_oracle("return<q5%", lambda share: np.nan)


@some_examples
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_resolved_text_holds_the_exact_number(number):
    assert parse_oracle(resolved("return<q5%", lambda share: number)) == Return("<", number)


@pytest.mark.parametrize(
    ("text", "subjects"),
    [
        ("terminated", ("terminated",)),
        ("return<1 | reward>2 | return<q5%", ("return", "reward")),
        ("!info.b & (info.a | info.speed>1 as truncated)", ("info.b", "info.a", "info.speed")),
        ("terminated as out_of_space | truncated as late", ("terminated", "truncated")),
        ("info.truncated", ("info.truncated",)),
    ],
)
def test_what_an_oracle_looks_at_comes_in_the_order_of_the_text(text, subjects):
    assert looks_at(text) == subjects
