"""The target as a whole: oracle, options, policies, pictures."""

from itertools import pairwise

import numpy as np
import pytest

from policyfuzz import Runner, load_target
from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.core.interfaces import Renders
from policyfuzz.oracles import NONE, Trajectories
from policyfuzz.policies.mlp import MlpBank, write_npz
from policyfuzz.targets.coopnavi.actors import SpreadPolicy, act, shipped_actors
from policyfuzz.targets.coopnavi.simulator import SpreadSimulator
from policyfuzz.targets.coopnavi.target import Collisions, make_target


def made(text="", policy=None):
    """The target with options as in its name."""
    return make_target(dict(item.split("=") for item in text.split(",") if item), policy)


def seeds(count):
    return np.zeros(count, np.uint64)


def random_bank(rng, networks=3, sizes=(18, 64, 64, 5), scale=0.5):
    parameters = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
    return MlpBank.from_parameters(rng.normal(0, scale, (networks, parameters)), sizes)


def trajectories(collisions, finished, near_misses=None):
    near_misses = np.zeros(np.shape(collisions)) if near_misses is None else near_misses
    signals = np.stack([collisions, finished, near_misses], axis=2).astype(float)
    count, steps, _ = signals.shape
    names = ("collisions", "finished", "near misses")
    return Trajectories(signals, names, np.zeros((count, steps)), np.full(count, steps))


@pytest.mark.parametrize(("limit", "step"), [(0, 1), (4, 3), (5, 4), (6, NONE)])
def test_crash_needs_more_collisions_than_the_limit(limit, step):
    verdicts = Collisions(limit, True, 4).judge(trajectories([[0, 1, 3, 5, 6]], [[0] * 5]))
    assert verdicts.steps.tolist() == [step]
    assert verdicts.crashed.tolist() == [step != NONE]


def test_finished_episode_is_excused_unless_the_oracle_says_otherwise():
    episodes = trajectories([[0, 6, 6, 6], [0, 6, 6, 6]], [[0, 0, 0, 1], [0, 0, 0, 0]])
    assert Collisions(5, True, 4).judge(episodes).crashed.tolist() == [False, True]
    assert Collisions(5, False, 4).judge(episodes).steps.tolist() == [1, 1]


def test_margin_is_how_many_collisions_are_missing_and_above_zero_when_excused():
    episodes = trajectories([[0, 1, 2], [0, 6, 8], [0, 6, 8]], [[0, 0, 0], [0, 0, 0], [0, 0, 1]])
    missing, crashed, excused = Collisions(5, True, 4).judge(episodes).margins
    assert missing == 4
    assert crashed <= 0 < excused
    assert Collisions(5, False, 4).judge(episodes).margins.tolist() == [4, -2, -2]


def test_margin_falls_with_near_misses_but_stays_above_that_of_one_more_collision():
    episodes = trajectories([[0, 1, 2]] * 3, [[0, 0, 0]] * 3, [[0, 0, 0], [0, 1, 3], [0, 50, 1e9]])
    none, some, many = Collisions(5, True, 4).judge(episodes).margins
    assert none > some > many > 3


def test_margin_is_larger_the_earlier_all_agents_arrived():
    episodes = trajectories([[0, 6, 6, 6]] * 3, [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]])
    early, later, last = Collisions(5, True, 4).judge(episodes).margins
    assert early > later > last > 0


def test_arriving_counts_as_one_collision_less_at_most():
    collisions = [[0, 5, 5, 5], [0, 3, 3, 3], [0, 4, 4, 4], [0, 0, 0, 0]]
    arrived = [[0, 1, 1, 1], [0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    margins = Collisions(5, True, 4).judge(trajectories(collisions, arrived)).margins
    nearest_first = [0, 2, 1, 3]  # who arrived after five collisions is nearer than who had four and did not
    assert np.argsort(margins).tolist() == nearest_first


def test_collisions_behind_the_end_do_not_count():
    episode = trajectories([[0, 0, 9]], [[0, 0, 0]])
    ended = Trajectories(episode.signals, episode.names, episode.rewards, np.array([2]))
    assert not Collisions(5, True, 4).judge(ended).crashed.any()


@pytest.mark.parametrize(("finish", "length"), [("excuses", 2), ("ends", 2), ("ignored", 26)])
def test_episode_ends_when_all_agents_have_arrived(finish, length):
    target = made(f"finish={finish},horizon=25")
    on_landmarks = np.array([[-0.5, 0, 0, 0.5, 0.5, 0, -0.5, 0, 0, 0.5, 0.5, 0]])
    assert Runner(target)(on_landmarks, seeds(1)).lengths.tolist() == [length]


def test_options_change_oracle_and_horizon():
    target = load_target("coopnavi:collisions=0,horizon=30")
    assert (target.horizon, target.oracle.limit) == (30, 0)
    assert load_target("coopnavi").oracle.limit == 5


@pytest.mark.parametrize(
    "options", ["", "horizon=50", "collisions=3,finish=ends,horizon=25,landmarks=fixed,starts=valid"]
)
def test_name_holds_the_options_that_are_not_as_usual(options):
    assert made(options).name == f"coopnavi:{options}".removesuffix(":")
    assert made("horizon=100,collisions=5").name == "coopnavi"


@pytest.mark.parametrize(
    "option", ["collisions=-1", "collisions=few", "horizon=24", "landmarks=no", "finish=maybe", "starts=all"]
)
def test_wrong_option_is_refused(option):
    with pytest.raises(UsageError, match=option.split("=")[0]):
        made(option)


def test_mutants_keep_their_landmarks_when_those_are_fixed():
    rng = np.random.default_rng(0)
    moving, fixed = load_target("coopnavi").inputs, load_target("coopnavi:landmarks=fixed").inputs
    inputs = moving.sample(rng, 100)
    changed = fixed.perturb(inputs, rng)
    np.testing.assert_array_equal(changed[:, 6:], inputs[:, 6:])
    assert (changed[:, :6] != inputs[:, :6]).all()
    assert np.abs(changed - inputs).max() <= 0.05
    assert (moving.perturb(inputs, rng) != inputs).all()


def test_valid_starts_need_not_be_solvable_when_asked_for():
    assert load_target("coopnavi").solvable is not None
    assert made("starts=valid").solvable is None


def test_same_episode_twice_is_the_same_in_other_company():
    target = made("finish=ignored")
    inputs = target.inputs.sample(np.random.default_rng(4), 130)
    whole = Runner(target)(inputs, seeds(130))
    assert len({outcome.episode_return for outcome in whole.outcomes}) == 130
    for rows in (np.array([17]), np.array([99, 3, 64]), np.arange(129, -1, -1)):
        part = Runner(target)(inputs[rows], seeds(len(rows)))
        np.testing.assert_array_equal(part.returns, whole.returns[rows])
        np.testing.assert_array_equal(part.states, whole.states[rows])


def test_density_sees_the_first_agent_without_the_zeros():
    simulator = SpreadSimulator()
    inputs = load_target("coopnavi").inputs.sample(np.random.default_rng(0), 5)
    frame = simulator.reset(inputs, seeds(5))
    assert frame.states.shape == (5, 14)
    np.testing.assert_array_equal(frame.states, frame.observations[:, 0, :14])
    assert not frame.observations[:, :, 14:].any()


def test_actions_are_the_softmax_of_each_agents_own_network():
    rng = np.random.default_rng(0)
    bank = random_bank(rng)
    observations = rng.normal(size=(7, 3, 18))
    actions = SpreadPolicy(bank).act(observations, np.arange(7))
    for agent in range(3):
        logits = bank(observations[:, agent], np.full(7, agent))
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        expected = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(actions[:, agent], expected, rtol=1e-14)


def test_huge_logits_do_not_overflow():
    actions = act(random_bank(np.random.default_rng(0), scale=50.0), np.ones((2, 3, 18)))
    np.testing.assert_allclose(actions.sum(axis=2), 1.0)


def write_public(path, bank, leave_out=(), spoil=0.0):
    """Write `bank` under the names of the public checkpoint."""
    arrays = {}
    for agent, flat in enumerate(bank.parameters):
        offset = 0
        for layer, (n_in, n_out) in enumerate(pairwise(bank.sizes)):
            suffix = f"_{layer}" if layer else ""
            name = f"agent_{agent}__p_func__fully_connected{suffix}"
            arrays[f"{name}__weights"] = flat[offset : offset + n_in * n_out].reshape(n_in, n_out)
            offset += n_in * n_out
            arrays[f"{name}__biases"] = flat[offset : offset + n_out] + spoil
            offset += n_out
    np.savez(path, **{name: value for name, value in arrays.items() if name not in leave_out})


def test_both_file_layouts_give_the_same_policy(tmp_path, monkeypatch):
    parameters = random_bank(np.random.default_rng(0)).parameters.astype(np.float32)
    bank = MlpBank.from_parameters(parameters, (18, 64, 64, 5))
    write_npz(tmp_path / "ours.npz", bank)
    write_public(tmp_path / "public.npz", bank)
    monkeypatch.chdir(tmp_path)
    ours, public = (load_target("coopnavi", f"coopnavi:{name}.npz") for name in ("ours", "public"))
    assert ours.policy_sha256 == public.policy_sha256 == bank.sha256 != load_target("coopnavi").policy_sha256
    assert ours.policy_uri == f"coopnavi:{tmp_path / 'ours.npz'}"
    inputs = ours.inputs.sample(np.random.default_rng(1), 10)
    np.testing.assert_array_equal(
        Runner(ours)(inputs, seeds(10)).returns, Runner(public)(inputs, seeds(10)).returns
    )


def spoilt(path, kind):
    rng = np.random.default_rng(0)
    if kind == "text":
        path.write_text("not weights")
    elif kind == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif kind == "others":
        np.savez(path, something=np.zeros(3))
    elif kind == "two":
        write_npz(path, random_bank(rng, networks=2))
    elif kind == "sizes":
        write_npz(path, random_bank(rng, sizes=(17, 64, 64, 5)))
    elif kind == "nan":
        write_public(path, random_bank(rng), spoil=np.nan)
    elif kind == "layer":
        write_public(path, random_bank(rng), leave_out=("agent_2__p_func__fully_connected_1__biases",))


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        ("absent", "no file .*actors.npz"),
        ("text", "actors.npz holds no networks"),
        ("array", "actors.npz holds no networks"),
        ("others", "actors.npz holds no networks"),
        ("two", "holds 2 network"),
        ("sizes", "from 17 to 5 numbers"),
        ("nan", "actors.npz: network 0 .*NaN"),
        ("layer", "holds no complete actors: .*agent_2__p_func__fully_connected_1__biases"),
    ],
)
def test_bad_file_gets_a_message_that_names_it(tmp_path, kind, complaint):
    spoilt(tmp_path / "actors.npz", kind)
    with pytest.raises(PolicyError, match=complaint):
        load_target("coopnavi", f"coopnavi:{tmp_path / 'actors.npz'}")


def test_policy_of_another_kind_is_refused():
    with pytest.raises(PolicyError, match=r"cannot use policy 'sb3:model\.zip'"):
        load_target("coopnavi", "sb3:model.zip")


def test_pictures_show_the_world_and_leave_the_episode_alone():
    target = made("finish=ignored")
    inputs = target.inputs.sample(np.random.default_rng(0), 2)
    plain, filmed = target.simulator(), target.simulator()
    assert isinstance(filmed, Renders)
    policy, rows = target.policy(), np.arange(2)
    frames = [simulator.reset(inputs, seeds(2)) for simulator in (plain, filmed)]
    pictures = [filmed.render(0)]
    for _ in range(5):
        actions = policy.act(frames[0].observations, rows)
        frames = [simulator.step(actions, rows) for simulator in (plain, filmed)]
        np.testing.assert_array_equal(frames[0].observations, frames[1].observations)
        pictures.append(filmed.render(0))
    assert {(picture.shape, picture.dtype) for picture in pictures} == {((640, 640, 3), np.dtype(np.uint8))}
    assert all((one != other).any() for one, other in pairwise(pictures))


def test_trail_is_drawn_when_few_episodes_are_watched():
    inputs = made().inputs.sample(np.random.default_rng(0), 9)
    pictures = []
    for count in (1, 9):
        simulator = SpreadSimulator()
        simulator.reset(inputs[:count], seeds(count))
        for _ in range(5):
            simulator.step(np.tile([0.0, 1.0, 0.0, 0.0, 0.0], (count, 3, 1)), np.arange(count))
        pictures.append(simulator.render(0).astype(int))
    assert (pictures[0] != pictures[1]).any(axis=2).sum() > 200


def pixels(picture, colour):
    return int((np.abs(picture.astype(int) - colour).max(axis=2) < 12).sum())


#: The simulator draws nothing at random.
NO_SEEDS = np.zeros(2, np.uint64)


def test_picture_flashes_only_when_agents_touch():
    simulator = SpreadSimulator()
    landmarks = [0.8, 0.8, 0.8, -0.8, -0.8, 0.8]
    simulator.reset(
        np.array([[0, 0, 0.29, 0, -0.7, 0, *landmarks], [0, 0, 0.31, 0, -0.7, 0, *landmarks]]), NO_SEEDS
    )
    red = np.array([220, 38, 38])
    assert pixels(simulator.render(0), red) > 100
    assert pixels(simulator.render(1), red) == 0


def test_picture_shows_which_landmarks_are_covered():
    simulator = SpreadSimulator()
    agents = [-0.8, -0.8, 0.0, -0.8, 0.8, -0.8]
    simulator.reset(np.array([[*agents, 0.0, 0.5, 0.5, 0.5, -0.5, 0.5], [*agents, *agents]]), NO_SEEDS)
    green = np.array([22, 163, 74])
    assert pixels(simulator.render(0), green) == 0
    assert pixels(simulator.render(1), green) > 100


@pytest.mark.slow
def test_shipped_actors_cover_the_landmarks_and_rarely_collide():
    """Below the scores of the model card, so that only another model fails."""
    target = made("finish=ignored,horizon=25")
    inputs = target.inputs.sample(np.random.default_rng(987_654_321), 5000)
    simulator, policy = target.simulator(), SpreadPolicy(shipped_actors())
    frame = simulator.reset(inputs, seeds(5000))
    for _ in range(25):
        frame = simulator.step(policy.act(frame.observations, np.arange(5000)), np.arange(5000))
    collisions, finished, covered, _ = frame.signals.T
    assert finished.mean() >= 0.97
    assert (covered == 3).mean() >= 0.84
    assert (collisions > 5).mean() <= 0.005
