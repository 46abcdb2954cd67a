import numpy as np
from scipy.stats import rankdata

from policyfuzz.core.inputs import Angle, Choice, InputSpace, Real
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.surrogate import _MOST_ENTRIES, Surrogate, _ranks

SPACE = InputSpace((Real("x", 0, 10), Angle("turn")))


def corpus_of(inputs, distances, crashed, dimensions=2):
    corpus, count = Corpus(dimensions), len(distances)
    columns = {name: np.zeros(count) for name in ("parent", "case_seed", "return")}
    columns |= {"energy": np.ones(count), "distance": np.array(distances), "is_crash": np.array(crashed)}
    corpus.append(np.array(inputs, float).reshape(count, dimensions), columns)
    return corpus


def guess(corpus, *places):
    return Surrogate.of(corpus, SPACE).guess(SPACE.to_unit(np.array(places, float)))


def test_a_guess_is_what_the_nearest_entries_came_to():
    corpus = corpus_of([(1, 0.0), (9, 0.0)], [5.0, -1.0], [False, True])
    at_one, near_the_crash, between = guess(corpus, (1, 0.0), (8, 0.0), (5, 0.0))
    assert abs(at_one - 5.0) < 0.01
    assert near_the_crash < between < at_one
    assert abs(between - 2.0) < 1e-9


def test_the_short_way_round_counts():
    corpus = corpus_of([(5, 3.1), (5, 0.0)], [0.0, 4.0], [False, False])
    (beyond,) = guess(corpus, (5, -3.1))
    assert beyond < 0.1


def test_a_crash_is_near_whatever_its_margin_says_and_unknown_distances_say_nothing():
    corpus = corpus_of([(1, 0.0), (1, 0.1), (9, 0.0)], [7.0, np.inf, 3.0], [True, False, False])
    at_the_crash, far = guess(corpus, (1, 0.0), (9, 0.0))
    assert abs(at_the_crash) < 0.01
    assert abs(far - 3.0) < 0.01


def test_an_input_lies_beside_the_nearest_entry_whose_distance_is_known():
    corpus = corpus_of([(1, 0.0), (9, 0.0), (5, 3.1)], [np.inf, 2.0, 3.0], [False, False, False])
    places = SPACE.to_unit(np.array([(1, 0.0), (9, 0.1), (5, -3.1)]))
    assert Surrogate.of(corpus, SPACE).nearest(places).tolist() == [2, 1, 2]


def test_entries_that_nothing_tells_apart_still_have_neighbours():
    corpus = corpus_of([(1, 0.0), (9, 0.0)], [np.inf, np.inf], [True, False])
    surrogate, places = Surrogate.of(corpus, SPACE), SPACE.to_unit(np.array([(8, 0.0), (2, 0.0)]))
    assert surrogate.guess(places).tolist() == [0.0, 0.0]
    assert surrogate.nearest(places).tolist() == [1, 0]


def test_nothing_known_tells_nothing_apart():
    assert guess(corpus_of([], [], []), (1, 0.0), (9, 0.0)).tolist() == [0.0, 0.0]


def test_only_the_latest_entries_are_asked():
    inputs = [(1, 0.0), *[(9, 0.0)] * _MOST_ENTRIES]
    corpus = corpus_of(inputs, [-1.0, *[4.0] * _MOST_ENTRIES], [True, *[False] * _MOST_ENTRIES])
    assert abs(guess(corpus, (1, 0.0))[0] - 4.0) < 1e-9


def test_of_many_choices_the_few_that_decide_are_found():
    space = InputSpace(tuple(Choice(f"c{number}", ("a", "b", "c")) for number in range(12)))
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 3, (600, 12)).astype(float)
    distances = (inputs[:, 0] != 2) + 0.5 * (inputs[:, 3] == 1) + rng.normal(size=600)
    corpus = corpus_of(inputs, distances, np.zeros(600, bool), 12)
    others = rng.integers(0, 3, (400, 12)).astype(float)
    is_near = (others[:, 0] == 2) & (others[:, 3] != 1)
    guessed = Surrogate.of(corpus, space).guess(space.to_unit(others))
    assert is_near[np.argsort(guessed)[: is_near.sum() // 2]].all()


def test_ranks_are_those_of_scipy():
    values = np.random.default_rng(3).integers(0, 20, 100).astype(float)
    values[:5] = np.inf
    assert _ranks(values).tolist() == rankdata(values).tolist()


def test_choices_of_which_nothing_is_known_are_all_alike():
    space = InputSpace((Choice("c", ("a", "b")),))
    known = corpus_of([[0], [1]], [np.inf, np.inf], [True, False], 1)
    for corpus in (corpus_of([], [], [], 1), known):
        first, second = Surrogate.of(corpus, space).guess(np.array([[0.0], [1.0]]))
        assert np.isclose(first, second)
