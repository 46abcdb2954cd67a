import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.search.corpus import COLUMNS, Corpus

some_examples = settings(max_examples=30, deadline=None, derandomize=True)


def entries(rng, count):
    """Inputs (count, 3) and all columns."""
    columns = {name: rng.normal(scale=50, size=count).astype(kind) for name, kind in COLUMNS.items()}
    columns["case_seed"] = rng.integers(0, 2**63, count, dtype=np.uint64)
    columns["energy"] = np.where(rng.random(count) < 0.3, np.nan, rng.exponential(size=count))
    return rng.normal(size=(count, 3)), columns


@some_examples
@given(st.lists(st.integers(0, 150), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_entries_keep_their_numbers_and_values_when_the_corpus_grows(counts, seed):
    rng, corpus = np.random.default_rng(seed), Corpus(3)
    parts = [entries(rng, count) for count in counts]
    numbers = np.concatenate([corpus.append(inputs, columns) for inputs, columns in parts])
    assert len(corpus) == sum(counts)
    np.testing.assert_array_equal(numbers, np.arange(sum(counts)))
    np.testing.assert_array_equal(corpus.inputs, np.concatenate([inputs for inputs, _ in parts]))
    for name, kind in COLUMNS.items():
        assert corpus.column(name).dtype == kind
        np.testing.assert_array_equal(
            corpus.column(name), np.concatenate([columns[name] for _, columns in parts])
        )


def corpus_with(energy):
    corpus, rng = Corpus(3), np.random.default_rng(0)
    inputs, columns = entries(rng, len(energy))
    corpus.append(inputs, columns | {"energy": np.array(energy)})
    return corpus


def test_an_entry_is_not_chosen_until_its_energy_is_measured():
    corpus = corpus_with([np.nan, 1.0, np.nan, 3.0])
    assert set(corpus.choose(np.random.default_rng(0), 300)) == {1, 3}
    corpus.set_energy(np.array([0]), np.array([50.0]))
    assert set(corpus.choose(np.random.default_rng(0), 300)) == {0, 1, 3}
    assert corpus.column("energy")[0] == 50.0


def test_an_entry_is_not_chosen_when_its_energy_is_infinite():
    corpus = corpus_with([np.inf, 1.0])
    assert set(corpus.choose(np.random.default_rng(0), 100)) == {1}


def test_entries_are_chosen_in_proportion_to_their_energy():
    chosen = corpus_with([1.0, 3.0]).choose(np.random.default_rng(0), 4000)
    assert 0.72 < chosen.mean() < 0.78


def test_columns_that_an_algorithm_does_not_use_may_be_left_out():
    corpus, (inputs, columns) = Corpus(3), entries(np.random.default_rng(0), 2)
    used = {name: columns[name] for name in ("parent", "case_seed", "return", "energy")}
    corpus.append(inputs, used)
    for name, values in used.items():
        np.testing.assert_array_equal(corpus.column(name), values)
    assert all(np.isnan(corpus.column(name)).all() for name in ("log_density", "distance", "tie_break"))
    assert not corpus.column("is_crash").any()
    assert not corpus.column("niche").any()


@pytest.mark.parametrize("name", ["parent", "case_seed", "return", "energy"])
def test_columns_that_every_algorithm_needs_may_not_be_left_out(name):
    inputs, columns = entries(np.random.default_rng(0), 2)
    del columns[name]
    with pytest.raises(KeyError):
        Corpus(3).append(inputs, columns)
