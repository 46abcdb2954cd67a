import numpy as np
import pytest

from policyfuzz.core.inputs import Angle, Choice, InputSpace, Integer, Real
from policyfuzz.search.cases import Cases, Purpose
from policyfuzz.search.climbers import _PATIENCE, CLIMBERS, Climbers, Rates, generation_size
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.evaluation import Evaluations
from policyfuzz.search.mutation import Mutator


def reals(dimensions):
    return InputSpace(tuple(Real(f"x{place}", 0, 1) for place in range(dimensions)))


class Slope:
    """A corpus whose entries are as far from a crash as `distance` says, and climbers that start there."""

    def __init__(self, distance, space, starts):
        self.distance, self.space, self.mutator = distance, space, Mutator(space)
        self.corpus, self.rng = Corpus(starts.shape[1]), np.random.default_rng(1)
        self.climbers = Climbers.of(starts.shape[1])
        self.corpus.set_roots(entries := self.keep(starts), entries + 100)
        count = len(starts)
        self.climbers.start(np.arange(count), entries, starts, entries + 100)

    def keep(self, unit):
        distances = self.distance(unit)
        columns = {
            "parent": np.full(len(unit), -1),
            "case_seed": np.zeros(len(unit), np.uint64),
            "return": distances,
            "energy": np.ones(len(unit)),
            "distance": distances,
            "tie_break": distances,
        }
        return self.corpus.append(unit, columns)

    def evaluations(self, unit, crashed=None):
        distances, cells = self.distance(unit), np.zeros(len(unit), np.int64)
        crashed = distances < 0 if crashed is None else crashed
        return Evaluations(cells, cells, distances, distances, np.asarray(crashed))

    def children(self, climbers):
        """Children of `climbers` (n,), and the cases that they would be."""
        parents = self.climbers.entries[climbers]
        unit = self.climbers.children(climbers, self.corpus.inputs[parents], self.mutator, self.rng)
        return unit, Cases.of(Purpose.MUTANT, unit, np.zeros(len(unit), np.uint64), parents)

    def generation(self, climber, size=None, crashed=None):
        chosen = np.full(size or generation_size(self.climbers.dimensions), climber)
        unit, cases = self.children(chosen)
        seen = self.evaluations(unit, crashed)
        moves = self.climbers.learn(self.corpus, cases, chosen, unit, seen, self.mutator)
        for who, row in moves.items():
            root = self.corpus.column("root")[self.climbers.entries[who]]
            entries = self.keep(unit[[row]])
            self.corpus.set_roots(entries, np.array([root]))
            self.climbers.move(who, int(entries[0]))
        return moves


def slope(distance=lambda unit: unit.sum(axis=1) + 1, dimensions=3, count=CLIMBERS):
    starts = np.random.default_rng(0).uniform(0.3, 0.7, (count, dimensions))
    return Slope(distance, reals(dimensions), starts)


def test_all_want_a_start_at_first_and_none_once_they_have_one():
    everyone = np.arange(CLIMBERS)
    assert Climbers.of(3).stranded(everyone).tolist() == everyone.tolist()
    assert Climbers.of(3).stranded(everyone[:5]).tolist() == [0, 1, 2, 3, 4], "the others can wait"
    assert slope().climbers.stranded(everyone).tolist() == []


@pytest.mark.parametrize(("children", "served"), [(0, 1), (20, 1), (25, 2), (60, 5), (5000, CLIMBERS)])
def test_climbers_get_a_generation_or_more(children, served):
    assert generation_size(12) == 11
    assert Climbers.of(12).served(children).tolist() == list(range(served))


def test_climber_waits_until_its_children_have_been_run():
    climbers = Climbers.of(12)
    climbers.send(np.array([0, 0, 2]))
    climbers.send(np.array([1]))
    assert climbers.served(22).tolist() == [3, 4]
    climbers.receive(np.array([2, 0, 0]))
    assert climbers.served(22).tolist() == [0, 2]
    climbers.receive(np.array([1]))
    assert climbers.served(22).tolist() == [0, 1]
    climbers.send(np.arange(CLIMBERS))
    assert climbers.served(22).tolist() == []


def test_children_that_were_never_run_hold_no_climber_up():
    climbers = Climbers.of(12)
    climbers.send(np.array([0, 1]))  # somebody's own loop drops this batch
    climbers.send(np.array([2]))
    climbers.send(np.array([3]))
    climbers.receive(np.array([2]))
    assert climbers.idle.tolist() == [0, 1, 2, *range(4, CLIMBERS)]


def test_children_that_nobody_waits_for_change_nothing():
    """A campaign of an earlier version may have had some in flight."""
    climbers = Climbers.of(12)
    climbers.send(np.array([0]))
    climbers.receive(np.array([5, 5]))
    climbers.receive(np.empty(0, np.int64))
    assert climbers.served(11).tolist() == [1]


def test_climbers_that_wait_for_less_than_nothing_are_refused():
    state = Climbers.of(3).state() | {"waiting": np.full(CLIMBERS, -1)}
    with pytest.raises(ValueError, match="less than nothing"):
        Climbers.from_state(state, 3)


@pytest.mark.parametrize("dimensions", [1, 4, 12, 60])
def test_climber_arrives_in_a_corner_of_an_uneven_slope(dimensions):
    """Random draws would need more than 1e5 episodes from four dimensions on."""
    weights = 10.0 ** np.linspace(-1, 1, dimensions)

    def distance(unit):
        return np.sqrt(((unit - 0.9) ** 2 * weights).mean(axis=1)) - 0.03

    hill = slope(distance, dimensions, count=1)
    for _ in range(60 * (2 + int(np.log(dimensions)))):
        hill.generation(0)
        if hill.climbers.stranded(np.arange(1)).size:
            break
    assert hill.climbers.entries[0] == -1, "it has found a crash"


def test_widths_adapt_to_the_slope():
    """A dimension that does not matter keeps its width; one that matters a lot becomes narrow."""
    hill = slope(lambda unit: 1 + np.abs(unit[:, 0] - 0.5) + 1e-4 * np.abs(unit[:, 1] - 0.5), 2, count=1)
    for _ in range(25):
        hill.generation(0)
    narrow, wide = hill.climbers.widths[0]
    assert wide > 5 * narrow


def test_steady_progress_lengthens_steps_and_wandering_shortens_them():
    forward = slope(lambda unit: 10 - unit[:, 0], 4, count=1)
    forward.climbers.means[0], forward.climbers.scales[0] = 0.1, 0.001
    around = slope(lambda unit: 1 + ((unit - 0.5) ** 2).sum(axis=1), 4, count=1)
    around.climbers.means[0] = 0.5
    before = around.climbers.scales[0]
    for _ in range(20):
        forward.generation(0)
        around.generation(0)
    assert forward.climbers.scales[0] > 0.01
    assert around.climbers.scales[0] < before / 2


def test_climber_without_progress_is_stuck_in_the_end_and_one_with_progress_is_not():
    hill = slope(lambda unit: np.ones(len(unit)), count=2)
    for _ in range(_PATIENCE):
        hill.generation(0)
    assert hill.climbers.stranded(np.arange(2)).tolist() == []
    hill.generation(0)
    assert hill.climbers.stranded(np.arange(2)).tolist() == [0]
    hill.climbers.failures[1] = _PATIENCE * generation_size(3)
    hill.distance = lambda unit: unit.sum(axis=1) - 9
    hill.generation(1, crashed=[False] * generation_size(3))
    assert hill.climbers.stranded(np.arange(2)).tolist() == [0]


def test_climber_that_arrived_wants_a_new_start_and_learns_nothing_more():
    hill = slope(count=2)
    unit, cases = hill.children(np.zeros(8, np.int64))
    mean = hill.climbers.means[0].copy()
    hill.generation(0, crashed=[True] + [False] * (generation_size(3) - 1))
    assert hill.climbers.stranded(np.arange(2)).tolist() == [0]
    seen = hill.evaluations(unit)
    assert not hill.climbers.learn(hill.corpus, cases, np.zeros(8, np.int64), unit, seen, hill.mutator)
    np.testing.assert_array_equal(hill.climbers.means[0], mean)


def test_children_of_a_lineage_that_a_climber_has_left_teach_it_nothing():
    hill = slope(count=3)
    unit, cases = hill.children(np.zeros(8, np.int64))
    elsewhere = hill.corpus.inputs[[2]]
    hill.climbers.start(np.array([0]), np.array([2]), elsewhere, np.array([102]))
    hill.climbers.learn(hill.corpus, cases, np.zeros(8, np.int64), unit, hill.evaluations(unit), hill.mutator)
    np.testing.assert_array_equal(hill.climbers.means[[0]], elsewhere)
    assert hill.climbers.failures[0] == 0


def test_every_fourth_climber_goes_by_the_tie_break():
    hill = slope(count=8)
    for climber, expected in enumerate((0, 0, 0, 1, 0, 0, 0, 1)):
        unit, cases = hill.children(np.full(2, climber))
        cells = np.zeros(2, np.int64)
        seen = Evaluations(cells, cells, np.array([-5.0, 9.0]), np.array([9.0, -5.0]), np.zeros(2, np.bool_))
        who = np.full(2, climber)
        assert hill.climbers.learn(hill.corpus, cases, who, unit, seen, hill.mutator) == {climber: expected}


def test_only_values_with_an_order_are_moved_towards_better_children():
    space = InputSpace(
        (Real("x", 0, 1), Choice("kind", tuple("abcd")), Integer("level", 0, 3), Angle("turn"))
    )
    starts = np.array([[0.5, 0.375, 0.375, 0.99]])
    hill = Slope(lambda unit: 5 - unit[:, 0], space, starts)
    unit, _ = hill.children(np.zeros(400, np.int64))
    assert ((unit >= 0) & (unit <= 1)).all()
    assert len(np.unique(space.from_unit(unit)[:, 2])) > 1, "whole numbers vary even if steps are small"
    assert 0.05 < (unit[:, 1] != 0.375).mean() < 0.6
    for _ in range(5):
        hill.generation(0)
    assert hill.climbers.means[0, 1] == 0.375
    assert hill.climbers.means[0, 0] > 0.6


def test_random_steps_leave_paths_as_long_as_they_are():
    rates, rng, path = Rates.of(11, 12), np.random.default_rng(2), np.zeros(12)
    lengths = []
    for _ in range(3000):
        step = rates.weights @ rng.normal(size=(len(rates.weights), 12))
        path = rates.fade(path, step, rates.path)
        lengths.append(np.linalg.norm(path))
    assert np.mean(lengths[100:]) == pytest.approx(rates.expected, rel=0.05)
    assert rates.weights.sum() == pytest.approx(1)
    assert (np.diff(rates.weights) < 0).all()


@pytest.mark.parametrize("children", [2, 3, 75])
def test_a_generation_of_any_size_is_learnt_from(children):
    hill = slope(count=1)
    for _ in range(4):
        hill.generation(0, size=children)
    assert np.isfinite(hill.climbers.means).all()
    assert np.isfinite(hill.climbers.widths).all()
    assert hill.climbers.scales[0] > 0


def test_climbers_are_the_same_after_a_round_trip_through_their_state():
    hill = slope()
    for climber in range(CLIMBERS):
        hill.generation(climber)
    state = hill.climbers.state()
    again = Climbers.from_state({name: array.copy() for name, array in state.items()}, 3).state()
    assert again.keys() == state.keys()
    for name, array in state.items():
        np.testing.assert_array_equal(again[name], array)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("means", np.zeros((CLIMBERS, 4))),
        ("widths", np.full((CLIMBERS, 3), np.nan)),
        ("entries", np.zeros(CLIMBERS)),
        ("climbed", np.zeros((2, 2), np.int64)),
    ],
)
def test_a_state_that_no_climbers_can_have_is_refused(name, wrong):
    with pytest.raises(ValueError, match=f"the {name} of climbers"):
        Climbers.from_state(slope().climbers.state() | {name: wrong}, 3)
