"""How the walker's network is made: that interrupted runs end as others do, and what advantages are."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("Box2D", reason="needs the extra bipedal")
pytest.importorskip("gymnasium", reason="needs the extra bipedal")
pytest.importorskip("torch", reason="needs the extra training")

sys.path.insert(0, str(Path(__file__).parents[2] / "training"))

import torch
from bipedal import imitate, improve
from bipedal.advantages import Aim, advantages
from bipedal.hard_terrains import ENOUGH, HardTerrains
from bipedal.student import Scaling, make_network, to_bank
from bipedal.walks import Cases, Walks, acting, walk

from policyfuzz.policies.mlp import MlpBank, write_npz
from policyfuzz.targets.bipedal.networks import network_in
from policyfuzz.targets.bipedal.simulator import WalkerSimulator


def parameters(path):
    return network_in(path).parameters


@pytest.fixture
def teacher(tmp_path):
    rng = np.random.default_rng(0)
    weights = 0.3 * rng.normal(size=(24, 4))
    bank = MlpBank.from_layers([[(weights, np.zeros(4))]], output="tanh")
    write_npz(tmp_path / "teacher.npz", bank)
    return tmp_path / "teacher.npz"


def run_imitation(folder, teacher, rounds):
    """Imitate for so many rounds, or go on until then; returns the checkpoint."""
    given = ["--teacher", teacher, "--work", folder, "--out", folder / "student.npz", "--rounds", rounds]
    small = ["--walkers", 4, "--horizon", 30, "--fits", 20, "--widths", 8, 8]
    imitate.imitate(imitate.parser().parse_args([str(value) for value in given + small]))
    return folder / "imitate.pt"


def run_improvement(folder, student, stop_after=None):
    """Improve for eight rounds, or die in the middle of one."""
    given = ["--student", student, "--work", folder, "--out", folder / "networks.npz", "--rounds", 8]
    small = ["--walkers", 4, "--horizon", 40, "--validation", 2, "--every", 4]
    arguments = improve.parser().parse_args([str(value) for value in given + small])
    if stop_after is None:
        improve.improve(arguments)
        return
    walk_on, walked = improve.walk, []

    def walk_and_die(*passed):
        walked.append(passed)
        if len(walked) > stop_after:
            raise KeyboardInterrupt
        return walk_on(*passed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(improve, "walk", walk_and_die)
        with pytest.raises(KeyboardInterrupt):
            improve.improve(arguments)


@pytest.mark.slow
def test_interrupted_imitation_ends_as_one_that_was_not(tmp_path, teacher):
    run_imitation(tmp_path / "whole", teacher, 3)
    run_imitation(tmp_path / "parts", teacher, 1)
    run_imitation(tmp_path / "parts", teacher, 3)
    whole, parts = (parameters(tmp_path / name / "student.npz") for name in ("whole", "parts"))
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.slow
def test_interrupted_improvement_ends_as_one_that_was_not(tmp_path, teacher):
    student = run_imitation(tmp_path / "imitate", teacher, 1)
    run_improvement(tmp_path / "whole", student)
    run_improvement(tmp_path / "parts", student, stop_after=7)
    assert not (tmp_path / "parts" / "student-0008.npz").exists()
    run_improvement(tmp_path / "parts", student)
    for name in ("student-0004.npz", "student-0008.npz", "networks.npz"):
        whole, parts = (parameters(tmp_path / run / name) for run in ("whole", "parts"))
        np.testing.assert_array_equal(whole, parts)
    before = parameters(tmp_path / "imitate" / "student.npz")
    assert not np.array_equal(before, parameters(tmp_path / "whole" / "student-0008.npz"))


def test_work_folder_of_other_options_is_refused(tmp_path, teacher):
    run_imitation(tmp_path / "work", teacher, 1)
    (tmp_path / "work" / "options.json").write_text('{"seed": 2}')
    with pytest.raises(SystemExit, match="other options"):
        run_imitation(tmp_path / "work", teacher, 1)


def test_exported_network_is_the_one_that_was_trained():
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(50, 24)).astype(np.float32) * 3 + 1
    scaling, network = Scaling.of(seen), make_network((8, 8), 4, seed=5)
    with torch.no_grad():
        expected = network(scaling(torch.from_numpy(seen))).tanh().numpy()
    got = to_bank(network, scaling)(seen, np.zeros(50, np.int64))
    np.testing.assert_allclose(got, expected, atol=1e-5)


def walks_of(rewards, lengths, has_fallen):
    count, steps = rewards.shape
    return Walks(
        np.zeros((count, steps + 1, 24), np.float32),
        np.zeros((count, steps, 4), np.float32),
        rewards,
        np.array(lengths),
        np.array(has_fallen),
        np.array(has_fallen),
    )


def test_advantages_are_discounted_sums_of_surprises():
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, 5)).astype(np.float32), rng.normal(size=(2, 6)).astype(np.float32)
    walks = walks_of(rewards, [5, 3], [False, True])
    aim = Aim(discount=0.9, smoothing=0.8, reward_scale=0.5)
    got = advantages(walks, values, aim)
    for row, length in enumerate([5, 3]):
        expected = 0.0
        for step in reversed(range(length)):
            falls = row == 1 and step == 2
            outlook = 0.0 if falls else values[row, step + 1]
            expected = 0.5 * rewards[row, step] + 0.9 * outlook - values[row, step] + 0.9 * 0.8 * expected
            assert got[row, step] == pytest.approx(expected, rel=1e-5)
    assert (got[1, 3:] == 0).all()


def test_hard_terrains_come_again_until_they_are_walked():
    cases, hard = Cases.random(np.random.default_rng(0), 6), HardTerrains()
    rewards = np.zeros((6, 400), np.float32)
    hard.remember(cases, walks_of(rewards, [100] * 6, [True] * 5 + [False]))
    assert hard.cases.seeds.tolist() == cases.seeds[:5].tolist()
    again, limits = hard.draw(np.random.default_rng(1), 12, 400)
    assert set(again.seeds[:5].tolist()) == set(cases.seeds[:5].tolist())
    assert limits.tolist() == [250] * 5 + [400] * 7
    for _ in range(ENOUGH):
        assert cases.seeds[1] in hard.cases.seeds
        hard.remember(cases[:3], walks_of(rewards[:3], [300, 400, 400], [True, False, False]))
    assert hard.cases.seeds.tolist() == cases.seeds[[3, 4, 0]].tolist()
    assert hard.limits.tolist() == [250, 250, 400]


def test_walks_end_where_their_walkers_do():
    topple = MlpBank.from_layers([[(np.zeros((24, 4)), np.full(4, 3.0))]], output="tanh")
    walks = walk(WalkerSimulator(), acting(topple), Cases.random(np.random.default_rng(0), 3), 300)
    assert walks.has_fallen.all()
    last = walks.rewards[np.arange(3), walks.lengths - 1]
    assert (last == -100).all()
    assert (walks.counted.sum(axis=1) == walks.lengths).all()
