"""Reference sets: what they hold, what they cover, and for what they are refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.versus import reference
from benchmarks.versus.metrics import Covered
from benchmarks.versus.raw import Task
from benchmarks.versus.reference import NEVER, ReferenceSet, collect
from benchmarks.versus.results import Results
from benchmarks.versus.rules import Rules
from benchmarks.versus.targets import Entry, find_entry
from policyfuzz import load_target
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.target import Runner
from policyfuzz.oracles import Below

EASY = Entry("easy", "ripple:dimensions=2,regions=3,probability=0.01", 600)


@pytest.fixture(scope="session")
def made(made_reference):
    """A made-up set of crashes at `unit` (m, d)."""

    def make(unit: np.ndarray, periods: np.ndarray | None = None, **origin: str) -> ReferenceSet:
        flat = made_reference(unit, **origin)
        return flat if periods is None else replace(flat, periods=periods)

    return make


@pytest.fixture(scope="module", autouse=True)
def _small_rounds():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "_ROUND", 4096)
        yield


@pytest.fixture(scope="module")
def easy(tmp_path_factory) -> ReferenceSet:
    return collect(EASY, 100, tmp_path_factory.mktemp("references"), lambda line: None)


def test_every_member_is_valid_solvable_and_crashes_again(easy):
    target = EASY.load()
    assert len(easy) >= 100
    assert target.inputs.is_valid(easy.inputs).all()
    assert Runner(target)(easy.inputs, easy.seeds).crashed.all()
    assert (easy.unit == target.inputs.to_unit(easy.inputs)).all()
    assert len(np.unique(easy.inputs, axis=0)) == len(easy), "draws are independent"


def test_share_of_crashes_is_that_of_the_target(easy):
    # three regions of one per cent; four standard deviations
    expected = 0.03 * easy.episodes
    assert abs(len(easy) - expected) < 4 * np.sqrt(expected)


def test_crashes_that_no_policy_could_avoid_are_left_out(monkeypatch, tmp_path):
    plain = EASY.load()
    half = replace(plain, solvable=lambda inputs: inputs[:, 0] > 0.5)
    monkeypatch.setattr(reference.targets, "load", lambda _entry: half)
    found = collect(EASY, 10, tmp_path, lambda line: None)
    assert (found.inputs[:, 0] > 0.5).all()


def test_stopped_collection_goes_on_where_it_was(monkeypatch, tmp_path):
    monkeypatch.setattr(reference, "_ROUND", 500)
    whole = collect(EASY, 60, tmp_path / "whole", lambda line: None)

    def interrupt(line: str) -> None:
        if len(said) == 2:
            raise KeyboardInterrupt
        said.append(line)

    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        collect(EASY, 60, tmp_path / "parts", interrupt)
    assert reference.find("easy", tmp_path / "parts") is None, "half a set is none"
    rest: list[str] = []
    parts = collect(EASY, 60, tmp_path / "parts", rest.append)
    assert len(rest) == whole.rounds - 3
    assert (parts.inputs == whole.inputs).all()
    assert parts.episodes == whole.episodes
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["easy.npz"]


def test_parts_of_a_set_with_other_rules_are_not_used(tmp_path, made):
    made(np.zeros((100, 2))).save(tmp_path / "easy.partial.npz")
    found = collect(EASY, 5, tmp_path, lambda line: None)
    assert found.inputs.any()


def test_what_is_loaded_is_what_was_saved(easy, tmp_path):
    easy.save(tmp_path / "easy.npz")
    loaded = reference.find("easy", tmp_path)
    assert loaded is not None
    assert loaded.origin == easy.origin
    assert (loaded.episodes, loaded.rounds, loaded.code) == (easy.episodes, easy.rounds, easy.code)
    assert (loaded.inputs == easy.inputs).all()
    assert reference.find("other", tmp_path) is None


def test_damaged_file_gets_a_message(tmp_path):
    (tmp_path / "easy.npz").write_bytes(b"nonsense")
    with pytest.raises(CampaignError, match="holds no reference set") as caught:
        reference.find("easy", tmp_path)
    assert "versus-reference" in caught.value.hint


@pytest.mark.parametrize(
    ("task", "complaint"),
    [
        (Task("acasxu", "acasxu:bucket=3", None, "random", 0, 10), "another target: 'acasxu'"),
        (Task("acasxu", "acasxu", None, "random", 0, 10, "f00"), "another policy: '', now 'f00'"),
        (
            Task("acasxu", "acasxu", None, "random", 0, 10, "", "new"),
            "another oracle or rule of what is solvable",
        ),
    ],
)
def test_set_is_refused_for_anything_that_it_was_not_made_for(task, complaint, made):
    crashes = made(np.zeros((1, 4)))
    crashes.check(Task("acasxu", "acasxu", None, "random", 0, 10))
    with pytest.raises(CampaignError, match=complaint) as caught:
        crashes.check(task)
    assert "versus-reference --target acasxu" in caught.value.hint


def test_report_refuses_a_set_of_another_policy(made_trial, made):
    crashes = {"acasxu": made(np.zeros((1, 4)), policy_sha256="f00")}
    with pytest.raises(CampaignError, match="another policy"):
        Results([made_trial(numbers=(1,))], references=crashes)


def test_a_crash_is_covered_from_the_first_finding_that_is_near(made):
    crashes = made(np.array([[0.5, 0.5], [0.9, 0.9]]))
    unit = np.array([[0.5, 0.56], [0.5, 0.52], [0.5, 0.5]])
    first = crashes.first_covered(unit, np.array([10, 20, 30]), 0.05)
    assert first.tolist() == [20, NEVER]
    assert crashes.first_covered(unit, np.array([10, 20, 30]), 0.1).tolist() == [10, NEVER]


def test_distance_goes_the_short_way_round_where_inputs_wrap(made):
    unit, near = np.array([[0.99, 0.5]]), np.array([[0.02, 0.5]])
    assert made(unit, np.array([1.0, 0.0])).first_covered(near, np.array([7]), 0.05).tolist() == [7]
    assert made(unit).first_covered(near, np.array([7]), 0.05).tolist() == [NEVER]


def test_nothing_is_covered_by_nothing(made):
    assert (
        made(np.zeros((3, 2))).first_covered(np.empty((0, 2)), np.empty(0, np.int64), 0.1).tolist()
        == [NEVER] * 3
    )


POINTS = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=st.floats(0, 1, width=16))


@given(POINTS, POINTS, st.sampled_from([0.05, 0.3]))
def test_first_covered_is_the_one_by_definition(made, crashes, unit, radius):
    periods = np.array([1.0, 0.0])
    apart = np.abs(crashes[:, None] - unit)
    apart = np.where(periods > 0, np.minimum(apart, 1 - apart), apart)
    near = np.sqrt((apart**2).sum(axis=2)) <= radius
    expected = [int(row.argmax()) + 1 if row.any() else NEVER for row in near]
    numbers = np.arange(1, len(unit) + 1)
    assert made(crashes, periods).first_covered(unit, numbers, radius).tolist() == expected


@given(POINTS, POINTS)
def test_copies_of_a_finding_cover_no_more_than_the_finding(made, crashes, unit):
    reference_set = made(crashes)
    once = reference_set.first_covered(unit, np.arange(1, len(unit) + 1), 0.05)
    copied = np.concatenate([unit, np.repeat(unit, 3, axis=0)])
    again = reference_set.first_covered(copied, np.arange(1, len(copied) + 1), 0.05)
    assert (once == again).all()


def test_refused_claims_cover_nothing(made_trial, made):
    unit = np.array([[0.0] * 4, [1.0] * 4])
    trial = replace(made_trial(numbers=(5, 6), verdicts=(1, 0)), unit=unit)
    covered = Covered.of(trial, made(unit))
    assert covered.near.tolist() == [NEVER, 6]


@pytest.mark.parametrize("label", ["acasxu", "ripple-2"])
def test_shipped_set_is_of_the_target_as_it_is_now(label):
    """Make it again after a change of target, policy or rules: python -m benchmarks versus-reference."""
    shipped, entry = reference.find(label), find_entry(label)
    assert shipped is not None
    target = entry.load()
    rules = Rules.of(target)
    shipped.check(Task(label, entry.target, None, "random", 0, 10, target.policy_sha256, rules.sha256))
    assert len(shipped) >= reference.CRASHES
    assert target.inputs.is_valid(shipped.inputs).all()
    assert target.solvable is not None
    assert target.solvable(shipped.inputs).all()
    # rounding may differ between processors at the very edge
    assert Runner(target)(shipped.inputs, shipped.seeds).crashed.mean() > 0.99


def test_shipped_set_of_the_public_networks_has_enough_crashes():
    shipped = reference.find("acasxu-public")
    assert shipped is not None
    assert len(shipped) >= reference.CRASHES
    assert shipped.origin.policy_sha256 not in ("", load_target("acasxu").policy_sha256)
    assert load_target("acasxu").inputs.is_valid(shipped.inputs).all()


def test_rules_follow_verdicts_and_not_code():
    target = EASY.load()
    plain = Rules.of(target)
    assert Rules.of(EASY.load()) == plain
    rewritten = replace(target, solvable=lambda inputs: inputs[:, 0] > -1.0)
    assert Rules.of(rewritten).sha256 == plain.sha256
    stricter = replace(target, solvable=lambda inputs: inputs[:, 0] > 0.01)
    assert Rules.of(stricter).sha256 != plain.sha256
    assert Rules.of(replace(target, horizon=49)).sha256 != plain.sha256
    assert Rules.of(replace(target, oracle=Below("gap", 0.1, kind="caught"))).sha256 != plain.sha256


def test_command_makes_a_set_in_a_folder(bench, tmp_path):
    code, out, err = bench(
        "versus-reference", "--target", EASY.target, "--crashes", 3, "-o", tmp_path / "sets"
    )
    assert code == 0
    assert "crashes in" in out
    assert "of 1,000; solvable by policyfuzz.targets.ripple" in out
    label = find_entry(EASY.target).label
    assert f"{label}: " in err
    assert reference.find(label, tmp_path / "sets") is not None


def test_command_refuses_what_makes_no_sense(bench):
    code, _, err = bench("versus-reference", "--target", "ripple-2", "--crashes", 0)
    assert (code, "crashes is 0" in err) == (2, True)
    code, _, err = bench("versus-reference", "--target", "acasxu-public")
    assert (code, "--public-networks DIR" in err) == (2, True)


def test_command_leaves_out_what_is_not_here_unless_it_is_asked_for(bench, tmp_path):
    code, out, err = bench("versus-reference", "--crashes", 1, "-o", tmp_path)
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines()] == ["acasxu", "ripple-2"]
    assert "acasxu-public is left out" in err
