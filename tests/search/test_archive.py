import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.search.archive import Archive
from policyfuzz.search.behaviour import BEHAVIOUR_CELLS
from policyfuzz.search.corpus import COLUMNS, Corpus
from policyfuzz.search.evaluation import Evaluations, InputCells

some_examples = settings(max_examples=40, deadline=None, derandomize=True)


def evaluated(rows):
    """Of rows (input cell, behaviour cell, distance, tie-break, crashed)."""
    inputs, behaviours, distances, tie_breaks, crashed = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    return Evaluations(
        inputs, behaviours, distances.astype(float), tie_breaks.astype(float), crashed.astype(bool)
    )


def archive_of(rows):
    archive = Archive(2)
    archive.add(np.arange(len(rows)), evaluated(rows))
    return archive


def test_elites_are_the_least_distance_and_the_least_tie_break():
    archive = archive_of([(5, 9, 3.0, 0.0, 0), (5, 9, 1.0, 8.0, 0), (5, 9, 1.0, 7.0, 0), (5, 9, 2.0, 0.0, 0)])
    assert archive.safe.tolist() == [2, 3]


def test_first_of_equals_stays_the_elite():
    archive = archive_of([(5, 9, 1.0, 7.0, 0), (5, 9, 1.0, 7.0, 0)])
    equal, better = evaluated([(5, 9, 1.0, 7.0, 0)]), evaluated([(5, 9, 1.0, 6.0, 0)])
    assert archive.safe.tolist() == [0]
    assert not archive.is_elite(equal).any()
    archive.add(np.array([2]), equal)
    assert archive.safe.tolist() == [0]
    assert archive.is_elite(better).all()


def test_entry_is_a_parent_when_it_is_the_best_of_either_cell():
    archive = archive_of([(1, 1, 1.0, 0.0, 0), (1, 2, 5.0, 0.0, 0), (2, 1, 5.0, 0.0, 0), (1, 1, 4.0, 0.0, 0)])
    assert archive.safe.tolist() == [0, 1, 2]


def test_only_the_best_of_a_batch_is_is_elite_in_each_cell():
    rows = [(1, 1, 3.0, 0.0, 0), (1, 1, 2.0, 0.0, 0), (2, 2, 9.0, 0.0, 0), (1, 1, 0.0, 0.0, 1)]
    assert Archive(2).is_elite(evaluated(rows)).tolist() == [False, True, True, False]


def test_what_is_as_far_as_can_be_is_not_is_elite():
    assert not Archive(2).is_elite(evaluated([(1, 1, np.inf, np.inf, 0)])).any()


def test_latest_finding_of_a_cell_is_a_parent_however_near_others_came():
    archive = archive_of([(1, 1, -9.0, 0.0, 1), (1, 1, -1.0, 0.0, 1), (1, 1, 5.0, 0.0, 0)])
    assert archive.crashed.tolist() == [1]
    assert archive.safe.tolist() == [2]
    archive.add(np.array([3]), evaluated([(1, 2, -2.0, 0.0, 1)]))
    assert archive.crashed.tolist() == [1, 3], (
        "the latest of the input's cell, and of each cell of the behaviour"
    )


def test_findings_are_rare_until_there_are_many_in_their_cells():
    place = evaluated([(1, 1, -1.0, 0.0, 1)])
    archive, rarities = Archive(2), []
    for entry in range(4):
        rarities.append(float(archive.rarity(place)[0]))
        archive.add(np.array([entry]), place)
    assert rarities[0] == 1.0
    assert rarities == sorted(rarities, reverse=True)
    assert len(set(rarities)) == 4
    assert rarities[3] < archive.rarity(evaluated([(1, 2, -1.0, 0.0, 1)]))[0] < 1.0, "half of it is new"


@some_examples
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_archive_of_a_corpus_is_the_one_that_grew_batch_by_batch(sizes, seed):
    rng, corpus, grown = np.random.default_rng(seed), Corpus(2), Archive(2)
    for size in sizes:
        unit = rng.integers(0, 4, (size, 2)) / 4  # few cells and few values: many ties
        columns = {name: np.zeros(size, kind) for name, kind in COLUMNS.items()}
        columns |= {
            "distance": rng.integers(0, 3, size).astype(float),
            "tie_break": rng.integers(0, 3, size).astype(float),
            "is_crash": rng.random(size) < 0.3,
            "niche": rng.integers(0, 5, size) * (BEHAVIOUR_CELLS // 5),
        }
        batch = Evaluations(
            InputCells(2).of(unit),
            columns["niche"],
            columns["distance"],
            columns["tie_break"],
            columns["is_crash"],
        )
        grown.add(corpus.append(unit, columns), batch)
    made = Archive.of(corpus, corpus.inputs)
    np.testing.assert_array_equal(made.safe, grown.safe)
    np.testing.assert_array_equal(made.crashed, grown.crashed)
    places = evaluated(
        [(cell, behaviour, 0.0, 0.0, 1) for cell in range(64) for behaviour in (0, BEHAVIOUR_CELLS // 5)]
    )
    np.testing.assert_array_equal(made.rarity(places), grown.rarity(places))
