"""The target: its policies and their files, its options, its oracle, its pictures."""

import json
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("Box2D", reason="needs the extra bipedal")
pytest.importorskip("gymnasium", reason="needs the extra bipedal")

from policyfuzz import Runner, load_target
from policyfuzz.core.errors import MissingExtra, PolicyError, UsageError
from policyfuzz.core.oracle import Below
from policyfuzz.policies.mlp import MlpBank, write_npz
from policyfuzz.targets.bipedal import walkers
from policyfuzz.targets.bipedal.networks import network_in


def parameters(width):
    return [0.1 * (i % 7 - 3) for i in range(width * width + 30 * width + 4)]


def write_json(path, content):
    path.write_text(json.dumps(content))
    return path


def random_bank(sizes=(24, 8, 4), count=1):
    rng = np.random.default_rng(0)
    wanted = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
    return MlpBank.from_parameters(rng.normal(size=(count, wanted)), sizes, "tanh", "tanh")


@pytest.mark.parametrize("width", [1, 40])
def test_json_of_the_public_layout_is_three_tanh_layers(tmp_path, width):
    flat = parameters(width)
    bank = network_in(write_json(tmp_path / "policy.json", [flat, 300.5]))
    observation = np.linspace(-1, 1, 24)
    expected, offset = observation, 0
    for n_in, n_out in ((24, width), (width, width), (width, 4)):
        weights = np.array(flat[offset : offset + n_in * n_out]).reshape(n_in, n_out)
        offset += n_in * n_out
        expected = np.tanh(expected @ weights + flat[offset : offset + n_out])
        offset += n_out
    got = bank(observation[None], np.zeros(1, np.int64))[0]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_npz_walks(tmp_path):
    write_npz(tmp_path / "policy.npz", random_bank())
    target = load_target("bipedal:horizon=20", f"bipedal:{tmp_path / 'policy.npz'}")
    executions = Runner(target)(
        target.inputs.sample(np.random.default_rng(0), 3), np.arange(3, dtype=np.uint64)
    )
    assert np.isfinite(executions.returns).all()
    assert target.policy_uri == f"bipedal:{(tmp_path / 'policy.npz').resolve()}"


def test_other_weights_have_another_digest(tmp_path):
    file = tmp_path / "policy.json"
    first = load_target("bipedal", f"bipedal:{write_json(file, [parameters(3), 0])}").policy_sha256
    changed = [0.5, *parameters(3)[1:]]
    assert load_target("bipedal", f"bipedal:{write_json(file, [changed, 0])}").policy_sha256 != first


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ([[0.1] * 2803, 1], "fit no network 24-h-h-4"),
        ([[], 1], "fit no network"),
        ([[[0.1] * 35], 1], "fit no network"),
        ([[0.1] * 34 + [float("nan")], 1], "NaN"),
        ([["a"] * 35, 1], "holds no network"),
        ({"weights": []}, "holds no network"),
        ([], "holds no network"),
    ],
)
def test_damaged_json_gets_a_message_that_says_so(tmp_path, content, complaint):
    with pytest.raises(PolicyError, match=complaint):
        network_in(write_json(tmp_path / "policy.json", content))


def test_text_that_is_no_json_gets_a_message_that_names_the_file(tmp_path):
    (tmp_path / "policy.json").write_bytes(b"\xff\x00")
    with pytest.raises(PolicyError, match=r"policy\.json holds no network"):
        network_in(tmp_path / "policy.json")


@pytest.mark.parametrize(
    ("bank", "complaint"),
    [
        (random_bank((24, 8, 3)), "from 24 to 3"),
        (random_bank((18, 8, 4)), "from 18 to 4"),
        (random_bank(count=2), r"2 network\(s\)"),
    ],
)
def test_networks_of_another_shape_are_refused(tmp_path, bank, complaint):
    write_npz(tmp_path / "policy.npz", bank)
    with pytest.raises(PolicyError, match=complaint):
        network_in(tmp_path / "policy.npz")


def test_missing_file_is_told(tmp_path):
    with pytest.raises(PolicyError, match="no file"):
        load_target("bipedal", f"bipedal:{tmp_path / 'none.npz'}")


def test_policy_of_another_target_is_refused():
    with pytest.raises(PolicyError, match="cannot use policy 'acasxu:x'"):
        load_target("bipedal", "acasxu:x")


@pytest.mark.parametrize(("text", "steps"), [("", 300), (":horizon=17", 17), (":horizon=full", 2000)])
def test_horizon_is_an_option(text, steps):
    target = load_target(f"bipedal{text}")
    assert target.horizon == steps
    assert load_target(target.name).horizon == steps


@pytest.mark.parametrize("text", ["0", "-3", "2001", "long", "3.5"])
def test_horizon_that_makes_no_sense_is_refused(text):
    with pytest.raises(UsageError, match="expected full, or a number of steps from 1 to 2000"):
        load_target(f"bipedal:horizon={text}")


def test_noise_turns_an_obstacle_into_the_next_type():
    inputs = load_target("bipedal").inputs
    before = inputs.sample(np.random.default_rng(0), 2000)
    after = inputs.perturb(before, np.random.default_rng(1))
    moved = (after - before) % 3
    assert set(np.unique(moved)) == {0.0, 1.0}
    assert (moved == 1).any(axis=1).all()  # noise that changes nothing is drawn again
    # a tenth each, given that one at least has changed
    assert (moved == 1).mean() == pytest.approx(0.1 / (1 - 0.9**15), abs=0.005)


def test_samples_hold_all_types_equally_often():
    drawn = load_target("bipedal").inputs.sample(np.random.default_rng(0), 4000)
    assert np.bincount(drawn.astype(int).ravel()) / drawn.size == pytest.approx([1 / 3] * 3, abs=0.01)


def test_fall_is_a_crash_at_the_step_at_which_the_hull_touches(tmp_path):
    # legs that stretch as far as they can topple the walker
    still = MlpBank.from_layers([[(np.zeros((24, 4)), np.array([3.0, 3.0, 3.0, 3.0]))]], output="tanh")
    write_npz(tmp_path / "still.npz", still)
    target = load_target("bipedal", f"bipedal:{tmp_path / 'still.npz'}")
    executions = Runner(target)(np.zeros((1, 15)), np.array([3], np.uint64))
    assert target.oracle.kinds == ("fall",)
    assert executions.crashed[0]
    assert executions.verdicts.steps[0] == executions.lengths[0] - 1 < 300
    assert executions.returns[0] < -90


def test_margin_ranks_walks_and_falls_and_changes_no_crash(tmp_path):
    target = load_target("bipedal:horizon=120")
    inputs = target.inputs.sample(np.random.default_rng(0), 16)
    seeds = np.arange(16, dtype=np.uint64)
    stumbling = replace(target, policy=lambda: Wild())
    graded, plain = stumbling, replace(stumbling, oracle=Below("clear", 0.5, kind="fall"))
    with_margins, without = (Runner(one)(inputs, seeds).verdicts for one in (graded, plain))
    np.testing.assert_array_equal(with_margins.kinds, without.kinds)
    np.testing.assert_array_equal(with_margins.steps, without.steps)
    crashed = with_margins.crashed
    assert 0 < crashed.sum() < 16
    assert (with_margins.margins[crashed] < 0).all()
    assert (with_margins.margins[~crashed] > 0).all()
    assert len(np.unique(with_margins.margins)) == 16


class Wild:
    """Half of the walkers move at random, the others stand still."""

    def begin(self, count):
        self._step = 0

    def act(self, observations, rows):
        self._step += 1
        moves = np.random.default_rng(self._step).uniform(-1, 1, (100, 4))
        return moves[rows] * (rows % 2)[:, None]


def test_missing_package_is_asked_for_by_the_name_of_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)
    walkers.package.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install .*\[bipedal\]"):
        Runner(load_target("bipedal"))
    walkers.package.cache_clear()


@pytest.mark.slow
def test_shipped_network_walks():
    target = load_target("bipedal")
    rng = np.random.default_rng(123_456)
    executions = Runner(target)(target.inputs.sample(rng, 64), rng.integers(0, 2**63, 64, dtype=np.uint64))
    assert executions.crashed.mean() < 0.1
    assert np.median(executions.returns) > 50


def test_any_policy_that_fits_can_walk(tmp_path):
    (tmp_path / "walker.py").write_text(
        "import numpy as np\n\n\ndef act(observations):\n    return np.zeros((len(observations), 4))\n"
    )
    uri = f"py:{tmp_path / 'walker.py'}:act"
    target = load_target("bipedal", uri)
    assert target.policy_uri == uri
    inputs = target.inputs.sample(np.random.default_rng(0), 2)
    assert (Runner(target)(inputs, np.arange(2, dtype=np.uint64)).lengths > 1).all()


def test_policy_that_does_not_fit_is_told(tmp_path):
    (tmp_path / "walker.py").write_text("def act(observation):\n    return [0.0, 1.0]\n")
    with pytest.raises(PolicyError, match="4"):
        load_target("bipedal", f"py:{tmp_path / 'walker.py'}:act")
