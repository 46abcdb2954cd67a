import math
import random
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.modes.command import labels_of
from benchmarks.modes.planted import ACTIVE, BoatSimulator, Water, planted_target
from policyfuzz.core.executions import Executions
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Runner
from policyfuzz.store.records import Finding
from policyfuzz.triage.clusters import adjusted_rand
from policyfuzz.triage.modes import ModeSettings, choose, find_modes, neighbours_of

FEW = ModeSettings(findings=600, draws=64, neighbours=8)


def finding(number, row, kind="lost", root=None, margin=-1.0, status="confirmed", is_distinct=True):
    return Finding(
        id=number,
        status=status,
        is_distinct=is_distinct,
        is_novel=True,
        kind=kind,
        crash_step=10,
        episode_return=0.0,
        margin=margin,
        outcome=number,
        repeats=0,
        root=number if root is None else root,
        behaviour=None,
        reseeded=None,
        reseeded_crashes=None,
        survived_by=None,
        parent=None,
        case_seed=1,
        batch=1,
        execution=number,
        seconds=0.0,
        origin=None,
        input=np.asarray(row, np.float64),
    )


def planted(sizes, per_mode=60, idle=0, seed=0):
    """A target with known modes, findings all over them, and which mode each is."""
    water = Water.make(np.array(sizes), seed)
    rng = np.random.default_rng(seed)
    rows = []
    for centre, measure in zip(water.centres, water.measures, strict=True):
        ball = rng.normal(size=(per_mode, ACTIVE))
        ball *= (rng.random(per_mode) ** (1 / 3) / np.linalg.norm(ball, axis=1))[:, None]
        rows.append(
            np.hstack([centre + 0.99 * ball @ np.linalg.inv(measure).T, rng.random((per_mode, idle))])
        )
    inputs = np.concatenate(rows)
    findings = [finding(number, row, root=number % 50) for number, row in enumerate(inputs, 1)]
    return planted_target(water, idle), findings, np.repeat(np.arange(len(sizes)), per_mode)


def modes_of(target, findings, settings=FEW, behaviours=None, run=None):
    return find_modes(
        target, findings, behaviours or {}, run or Runner(target), seed=0, settings=settings, state_names=()
    )


@pytest.mark.parametrize(("sizes", "idle"), [([1e-3] * 2, 0), ([1e-3] * 4, 0), ([1e-3] * 4, 4)])
def test_planted_modes_are_found(sizes, idle):
    target, findings, truth = planted(sizes, 120, idle)
    modes = modes_of(target, findings)
    assert modes.is_stable
    assert modes.agreement >= 0.9
    assert adjusted_rand(labels_of(modes, [one.id for one in findings]), truth) >= 0.9


def test_one_planted_mode_is_one():
    target, findings, _ = planted([1e-3], 300)
    modes = modes_of(target, findings)
    assert len(modes.modes) == 1
    assert modes.is_stable


def test_modes_do_not_depend_on_the_order_of_findings():
    target, findings, _ = planted([1e-3] * 2)
    shuffled = findings.copy()
    random.Random(1).shuffle(shuffled)
    assert modes_of(target, shuffled) == modes_of(target, findings)


def test_kinds_of_crash_are_never_mixed():
    target, findings, _ = planted([1e-3], 200)
    oracle = Below("room", 0.0, kind="lost") | Below("room", -1.0, kind="sunk")

    class TwoKinds:
        kinds = oracle.kinds

        def judge(self, trajectories):
            verdicts = oracle.judge(trajectories)
            is_late = verdicts.crashed & (verdicts.steps % 2 == 1)
            return replace(verdicts, kinds=np.where(is_late, 1, verdicts.kinds))

    target = replace(target, oracle=TwoKinds())
    runs = Runner(target)(np.array([one.input for one in findings]), np.ones(len(findings), np.uint64))
    findings = [
        replace(one, kind=oracle.kinds[kind]) for one, kind in zip(findings, runs.verdicts.kinds, strict=True)
    ]
    modes = modes_of(target, findings).modes
    kinds = {one.id: one.kind for one in findings}
    assert {mode.kind for mode in modes} == {"lost", "sunk"}
    assert all(kinds[member] == mode.kind for mode in modes for member in mode.members)


@pytest.mark.parametrize("count", [1, 2])
def test_a_few_findings_are_one_mode_that_was_not_tested(count):
    target, findings, _ = planted([1e-3])
    modes = modes_of(target, findings[:count])
    assert [len(mode.members) for mode in modes.modes] == [count]
    assert not modes.is_stable
    assert "too few" in modes.reason


def test_no_findings_have_no_modes():
    target, findings, _ = planted([1e-3])
    flaky = [replace(findings[0], status="flaky")]
    for none in ([], flaky):
        modes = modes_of(target, none)
        assert modes.modes == ()
        assert not modes.is_stable


def test_findings_that_do_not_crash_any_more_are_said_to():
    target, findings, _ = planted([1e-3])
    moved = [replace(one, input=1 - one.input) for one in findings[:30]]
    modes = modes_of(target, moved)
    assert modes.modes == ()
    assert "changed" in modes.reason


def test_severity_is_the_deepest_margin_and_nan_where_none_is_known():
    target, findings, _ = planted([1e-3])
    margins = [math.nan, -3.0, *[-1.0] * (len(findings) - 2)]
    known = [replace(one, margin=margin) for one, margin in zip(findings, margins, strict=True)]
    assert modes_of(target, known).modes[0].severity == 3.0
    unknown = [replace(one, margin=math.nan) for one in findings]
    assert math.isnan(modes_of(target, unknown).modes[0].severity)


def test_findings_that_are_not_run_again_join_the_nearest_by_behaviour_or_input():
    target, findings, truth = planted([1e-3] * 2, 150)
    some = replace(FEW, findings=100)
    behaviours = {one.id: [float(which)] for one, which in zip(findings, truth, strict=True)}
    for known in (behaviours, {}):
        modes = modes_of(target, findings, some, known)
        assert sum(len(mode.members) for mode in modes.modes) == len(findings)
        assert adjusted_rand(labels_of(modes, [one.id for one in findings]), truth) >= 0.9


def test_choice_of_findings_keeps_every_lineage_and_kind():
    rows = np.random.default_rng(0).random((200, 2))
    ones = [
        finding(n, row, root=0 if n < 190 else n, kind="a" if n < 198 else "b") for n, row in enumerate(rows)
    ]
    chosen = choose(ones, 20)
    assert len(chosen) == 20
    assert {(one.kind, one.root) for one in chosen} == {(one.kind, one.root) for one in ones}


def test_choice_takes_distinct_findings_first():
    rows = np.random.default_rng(0).random((50, 2))
    ones = [finding(number, row, root=1, is_distinct=number < 5) for number, row in enumerate(rows)]
    assert {one.id for one in choose(ones, 5)} == set(range(5))


def test_shares_come_from_random_crashes_with_their_interval():
    target, findings, _ = planted([0.02] * 2, 100)
    modes = modes_of(target, findings, replace(FEW, draws=1000))
    assert modes.random_crashes > 10
    assert modes.random_draws == 1000
    assert sum(mode.random_crashes for mode in modes.modes) == modes.random_crashes
    for mode in modes.modes:
        assert mode.share_low < 0.5 < mode.share_high
        assert mode.share_low <= mode.share <= mode.share_high


def test_share_is_not_known_without_a_random_crash():
    target, findings, _ = planted([1e-6])
    modes = modes_of(target, findings)
    assert modes.random_crashes == 0
    assert math.isnan(modes.modes[0].share)


def test_robustness_counts_crashes_near_the_representative():
    target, findings, _ = planted([0.02], 100)
    mode = modes_of(target, findings).modes[0]
    assert mode.neighbours == 8
    assert 0.5 < mode.robustness <= 1.0  # the medoid lies deep inside


def test_neighbours_keep_their_distance_and_are_valid():
    target, findings, _ = planted([1e-3])
    row = findings[0].input
    near = neighbours_of(row, target, np.random.default_rng(0), 20)
    assert len(near) == 20
    assert target.inputs.distance(near, np.repeat(row[None], 20, axis=0)) == pytest.approx(
        0.001 * math.sqrt(3)
    )


def test_progress_ends_with_all_episodes():
    target, findings, _ = planted([1e-3])
    seen = []
    find_modes(
        target, findings, {}, Runner(target), seed=0, settings=FEW, report=lambda *one: seen.append(one)
    )
    assert seen[-1][0] == seen[-1][1] == len(findings) + 64 + 8


def test_words_name_states_and_the_dimensions_that_are_narrow():
    target, findings, _ = planted([1e-3] * 4, 120)
    modes = find_modes(
        target, findings, {}, Runner(target), seed=0, settings=FEW, state_names=("east", "north", "up")
    )
    assert all(mode.words.startswith("lost at step") for mode in modes.modes)
    assert any(" to " in mode.words and "x" in mode.words for mode in modes.modes)


def test_numbers_that_are_too_large_to_square_do_no_harm():
    target, findings, _ = planted([1e-3])

    class Huge(BoatSimulator):
        def _frame(self, rows):
            frame = super()._frame(rows)
            return replace(frame, states=frame.states * 1e300)

    water = Water.make(np.array([1e-3]), 0)
    target = replace(target, simulator=lambda: Huge(water))
    assert len(modes_of(target, findings).modes) == 1


def test_only_confirmed_findings_are_run():
    target, findings, _ = planted([1e-3])
    asked = []

    def run(inputs, seeds) -> Executions:
        asked.extend(map(tuple, inputs.tolist()))
        return Runner(target)(inputs, seeds)

    modes_of(target, [replace(findings[0], status="new"), *findings[1:]], run=run)
    assert tuple(findings[0].input.tolist()) not in asked
    assert tuple(findings[1].input.tolist()) in asked
