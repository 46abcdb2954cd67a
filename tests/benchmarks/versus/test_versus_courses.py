"""Courses: how far a walker came, and what it had met by then."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.versus.courses import CourseWatch, has_courses, obstacles_reached
from benchmarks.versus.judge import Judge, Verdict
from benchmarks.versus.trial import Trial
from policyfuzz import load_target
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Runner
from policyfuzz.targets.bipedal.terrain import CELL, CELLS, FLAT_CELLS, lay_course

TYPES = [0, 1, 2] * 5


def test_more_obstacles_are_reached_the_farther_a_walker_comes():
    counts = [len(obstacles_reached(TYPES, 3, float(x))) for x in np.linspace(0, CELLS * CELL, 50)]
    assert counts == sorted(counts)
    assert counts[0] == 0, "the start is flat"
    assert counts[-1] == len(lay_course(TYPES, np.random.default_rng(3)).starts)


def test_reached_obstacles_are_the_first_of_the_input():
    assert obstacles_reached(TYPES, 3, 60 * CELL) == TYPES[: len(obstacles_reached(TYPES, 3, 60 * CELL))]
    assert len(obstacles_reached(TYPES, 3, FLAT_CELLS * CELL)) == 1


def test_only_walkers_have_courses():
    target = load_target("ripple")
    assert not has_courses(target)
    assert CourseWatch.of(target, 3) is None


@pytest.fixture(scope="module")
def walkers():
    pytest.importorskip("Box2D")
    return load_target("bipedal:horizon=40")


def watched(target, inputs: np.ndarray, seeds: np.ndarray) -> list[int]:
    watch = CourseWatch.of(target, len(inputs))
    assert watch is not None
    Runner(target)(inputs, seeds, watch)
    return watch.courses(inputs, seeds).tolist()


def test_obstacles_that_no_walker_reached_make_no_other_course(walkers):
    """Forty steps do not lead to the end of the flat start and the second obstacle."""
    inputs = np.array([TYPES, [*TYPES[:5], *([0] * 10)], TYPES], np.float64)
    first, behind, other_seed = watched(walkers, inputs, np.array([1, 1, 2], np.uint64))
    assert first == behind
    assert first != other_seed


def test_judge_gives_a_course_to_every_fall(walkers):
    always = replace(walkers, oracle=Below("clear", 2.0, kind="fall"))
    inputs, seeds = np.array([TYPES, TYPES[::-1]], np.float64), np.array([1, 2], np.uint64)
    judged = Judge(always)(Trial(2, 1.0, 1.0, np.array([1, 2]), inputs, seeds), 2)
    assert (judged.verdicts == Verdict.FINDING).all()
    assert len(set(judged.courses.tolist()) - {0}) == 2


def test_watched_course_is_the_one_that_the_walker_walks_on(walkers):
    from policyfuzz.targets.bipedal.walkers import Walker

    walker = Walker()
    walker.reset(TYPES, 7)
    assert walker.course.starts == lay_course(TYPES, np.random.default_rng(7)).starts
