import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mpe2", reason="needs the extra pettingzoo")

from policyfuzz import as_target, load_target
from policyfuzz.cli.main import exit_code
from policyfuzz.conformance.suite import TargetConformance
from policyfuzz.core.code_files import load_file
from policyfuzz.core.errors import PolicyError, PolicyFuzzError, UsageError
from policyfuzz.core.target import Level, Runner
from policyfuzz.policies.uri import load_policy

HERE = Path(__file__).parent
POLICIES = HERE / "pettingzoo_policies.py"
MORTALS = HERE / "pettingzoo_mortals.py"
SPREAD, TAG = "pettingzoo:mpe2.simple_spread_v3", "pettingzoo:mpe2.simple_tag_v3"
SHARED = f"py:{POLICIES}:spread"
WAIT = f"py:{POLICIES}:wait"
HUNT_AND_FLEE = f"adversary=py:{POLICIES}:hunt;agent=py:{POLICIES}:flee"


def episodes(target, count=4):
    inputs = target.inputs.sample(np.random.default_rng(0), 20 * count)
    return inputs[target.inputs.is_valid(inputs)][:count], np.arange(count, dtype=np.uint64)


@pytest.mark.slow
class TestSharedPolicy(TargetConformance):
    target = f"{SPREAD}:oracle=info.collisions>1,horizon=12"
    policy = SHARED
    executions = 60


@pytest.mark.slow
class TestPolicyPerGroup(TargetConformance):
    target = f"{TAG}:oracle=info.agent_0.collisions,reward=agent_0,horizon=12"
    policy = HUNT_AND_FLEE
    executions = 60


@pytest.mark.slow
class TestAgentsThatDie(TargetConformance):
    target = f"pettingzoo:{MORTALS}:MortalAgents:oracle=info.guard_0.terminated&return<20"
    policy = WAIT
    executions = 120


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "oracle", "policies"),
    [
        (SPREAD, "info.collisions>1 as pile-up", [SHARED]),
        (TAG, "info.agent_0.collisions as caught", HUNT_AND_FLEE.split(";")),
    ],
)
def test_a_failure_is_found_replayed_and_filmed(tmp_path, capsys, target, oracle, policies):
    folder = tmp_path / "campaign"
    chosen = [word for policy in policies for word in ("--policy", policy)]
    limits = ["--max-execs", "160", "--samples", "60", "--batch", "32", "--ui", "none", "-o", str(folder)]
    fuzzed = exit_code(["fuzz", target, *chosen, "--oracle", oracle, "--horizon", "15", *limits])
    assert fuzzed == 1  # it has findings
    assert exit_code(["replay", str(folder), "1", "--trust"]) == 1  # it crashes again
    assert "exactly as recorded" in capsys.readouterr().out
    assert {path.suffix for path in (folder / "findings").glob("1.*")} in ({".png", ".mp4"}, {".png", ".gif"})


def _page(folder):
    """The commands of the page on this, its programs written into `folder`."""
    page = (HERE.parents[1] / "docs" / "multi-agent.md").read_text()
    for program in re.findall(r"```python\n(.*?)```", page, re.S):
        (folder / re.findall(r"\A# (\S+)", program)[0]).write_text(program)
    lines = "".join(re.findall(r"```sh\n(.*?)```", page, re.S)).splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("policyfuzz ")]


@pytest.mark.slow
def test_every_command_of_the_page_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    commands = [words for words in _page(tmp_path) if "sb3:shared.zip" not in words and "spread" not in words]
    assert len(commands) == 4
    for words in commands:
        assert exit_code(words) == 1, words  # each of them finds or shows a crash
    assert "exactly as recorded" in capsys.readouterr().out


@pytest.mark.slow
def test_the_page_trains_a_policy_that_can_be_fuzzed(tmp_path, monkeypatch):
    pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
    monkeypatch.chdir(tmp_path)
    _, fuzz, replay = (words for words in _page(tmp_path) if "--trust" in words and "tag" not in words)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # sums of several threads come out differently every time
    shorter = (tmp_path / "train.py").read_text().replace("60_000", "1500")
    seeded = shorter.replace("model = PPO", "agents.venv.env.reset(seed=0)\nmodel = PPO")
    assert "learn(1500)" in seeded
    assert "reset(seed=0)" in seeded
    subprocess.run([sys.executable, "-c", seeded], check=True)
    fuzz = ["--max-execs=400" if word == "--max-time" else word for word in fuzz if word != "30s"]
    # so short a training records the returns of actions drawn at random, which its best actions may not reach
    code = exit_code([*fuzz, "--force"])
    assert code in (0, 1)  # what so short a training finds depends on how the processor rounds
    assert code == 0 or exit_code(replay) == 1


def test_the_notes_tell_what_was_chosen():
    target = load_target(f"{SPREAD}:horizon=6", SHARED)
    notes = "\n".join(target.notes)
    assert "agents: agent_0, agent_1, agent_2" in notes
    assert "input: where agents and landmarks begin" in notes
    assert "reward: the sum over all agents" in notes
    assert "oracle: terminated | return<-" in notes
    assert load_target(target.name, target.policy_uri).oracle == target.oracle
    assert target.horizon == 6


def test_one_policy_for_each_agent_is_the_same_as_one_for_all():
    shared = load_target(f"{SPREAD}:oracle=terminated,horizon=8", SHARED)
    each = load_target(shared.name, ";".join(f"agent_{i}={SHARED}" for i in range(3)))
    mixed = load_target(shared.name, f"{SHARED};agent_1={SHARED}")
    inputs, seeds = episodes(shared)
    wanted = Runner(shared)(inputs, seeds)
    for target in (each, mixed):
        np.testing.assert_array_equal(Runner(target)(inputs, seeds).returns, wanted.returns)
        assert target.policy_sha256 != shared.policy_sha256
        again = load_target(target.name, target.policy_uri)
        assert again.policy_sha256 == target.policy_sha256


def test_another_policy_for_one_agent_makes_a_difference():
    shared = load_target(f"{SPREAD}:oracle=terminated,horizon=8", SHARED)
    mixed = load_target(shared.name, f"{SHARED};agent_1={WAIT}")
    inputs, seeds = episodes(shared)
    moved = np.abs(Runner(mixed)(inputs, seeds).states[:, -1] - Runner(shared)(inputs, seeds).states[:, -1])
    assert (moved > 0.01).any(axis=1).all()


@pytest.mark.slow
def test_a_saved_model_is_shared_by_all_agents(tmp_path):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
    import gymnasium

    class OneAgent(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (18,), np.float32)
        action_space = gymnasium.spaces.Discrete(5)

    model = sb3.PPO("MlpPolicy", OneAgent(), n_steps=8, batch_size=8, seed=0, device="cpu")
    model.save(tmp_path / "shared.zip")
    target = load_target(f"{SPREAD}:oracle=terminated", f"sb3:{tmp_path / 'shared.zip'}", trust=True)
    inputs, seeds = episodes(target, 2)
    found = Runner(target)(inputs, seeds)
    env = _plain_spread(inputs[1], int(seeds[1]))
    total, seen = 0.0, {agent: env.unwrapped.observe(agent) for agent in env.agents}
    while env.agents:
        actions = {agent: int(model.predict(seen[agent], deterministic=True)[0]) for agent in env.agents}
        seen, rewards, *_ = env.step(actions)
        total += sum(rewards.values())
    assert found.returns[1] == pytest.approx(total, rel=1e-12)


def _plain_spread(places, seed):
    """The environment itself, begun as our input says."""
    from mpe2 import simple_spread_v3

    env = simple_spread_v3.parallel_env()
    env.reset(seed=seed)
    for entity, place in zip(env.unwrapped.world.entities, places.reshape(-1, 2), strict=True):
        entity.state.p_pos = place.copy()
    return env


@pytest.mark.parametrize(
    ("target", "policy", "said"),
    [
        (
            TAG,
            WAIT,
            r"(?s)different spaces:.*adversary_0, adversary_1.*agent_0.*adversary=URI --policy agent=URI",
        ),
        (TAG, f"adversary={WAIT}", "no policy was given for agent_0"),
        (TAG, f"adversery={WAIT}", "(?s)unknown agent 'adversery'.*did you mean 'adversary'"),
        (TAG, f"agent={WAIT};agent={WAIT}", "two policies were given for agent"),
        (TAG, None, "(?s)no policy was given.*adversary_0=sb3"),
    ],
)
def test_policies_that_do_not_fit_the_agents_are_refused(target, policy, said):
    with pytest.raises(PolicyFuzzError, match=said):
        load_target(f"{target}:oracle=terminated", policy)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("pettingzoo:mpe2.simple_sprad_v3", "did you mean 'mpe2.simple_spread_v3'"),
        ("pettingzoo:pettingzoo.mpe.simple_spread_v3", "use mpe2.simple_spread_v3"),
        ("pettingzoo:pettingzoo.classic.tictactoe_v3", "it is turn-based"),
        (f"pettingzoo:{POLICIES}", "has no 'parallel_env'"),
        (f"pettingzoo:{POLICIES}:POLICY", "has no 'POLICY'"),
        ("pettingzoo:json:JSONDecoder", "gave JSONDecoder; expected a pettingzoo.ParallelEnv"),
        (f"{SPREAD}:env.n=3", r"with env\.n: .*unexpected keyword"),
        (f"{SPREAD}:reward=agent_7", "unknown reward 'agent_7'"),
        (f"{SPREAD}:rewards=sum", "unknown option"),
        (f"{SPREAD}:horizon=0", "horizon is '0'"),
        (f"{SPREAD}:input=agent_9.x=0", "agent_9.x"),
    ],
)
@pytest.mark.filterwarnings("ignore:The old environment creation API:DeprecationWarning")
def test_what_cannot_be_made_is_told(target, said):
    with pytest.raises(UsageError, match=said) as error:
        load_target(target, SHARED)
    assert not isinstance(error.value, PolicyError)


@pytest.mark.parametrize(
    ("target", "policy", "horizon"),
    [
        (f"{SPREAD}:oracle=truncated", SHARED, 25),  # its own max_cycles
        (f"{SPREAD}:oracle=truncated,env.max_cycles=7", SHARED, 7),
        (f"{SPREAD}:oracle=truncated,horizon=40", SHARED, 40),
        (f"pettingzoo:{MORTALS}:oracle=truncated,horizon=3", WAIT, 3),  # takes no max_cycles
    ],
)
def test_episodes_are_as_long_as_the_user_wants(target, policy, horizon):
    loaded = load_target(target, policy)
    found = Runner(loaded)(*_still(loaded))
    assert (loaded.horizon, found.lengths[0] - 1, found.verdicts.steps[0]) == (horizon,) * 3


def _still(target):
    """One episode; that of an environment that begins by its seed has the seed 0."""
    inputs, seeds = episodes(target, 1)
    return (inputs, seeds) if len(inputs[0]) > 1 else (np.zeros((1, 1)), seeds)


def test_an_environment_without_a_limit_says_so():
    notes = load_target(f"pettingzoo:{MORTALS}:MortalAgents:oracle=terminated", WAIT).notes
    assert any(note.startswith("horizon: the environment declares no limit") for note in notes)


def test_an_environment_without_pictures_is_not_rendered():
    target = load_target(f"pettingzoo:{MORTALS}:MortalAgents:oracle=terminated,horizon=5", WAIT)
    assert target.film_simulator is None
    assert not hasattr(target.simulator(), "render")
    assert target.inputs.names == ("seed",)


def test_only_a_film_is_drawn_and_it_shows_the_same_episode():
    target = load_target(f"{SPREAD}:oracle=info.collisions>1,horizon=8", SHARED)
    search, film = Runner(target), Runner(target.for_film())
    assert search.simulator._slots[0].env.render_mode is None
    assert not hasattr(search.simulator, "render")
    inputs, seeds = episodes(target)
    pictures = []

    def look(*_):
        pictures.append(film.simulator.render(0))

    searched, filmed = search(inputs, seeds), film(inputs, seeds, look)
    assert len(pictures) == 9
    assert not np.array_equal(pictures[0], pictures[-1])
    for name in ("states", "returns", "lengths"):
        np.testing.assert_array_equal(getattr(filmed, name), getattr(searched, name))
    np.testing.assert_array_equal(filmed.verdicts.steps, searched.verdicts.steps)


@pytest.mark.parametrize(("option", "is_filmed"), [("render=no", False), ("env.render_mode=rgb_array", True)])
def test_the_user_says_whether_it_is_drawn(option, is_filmed):
    target = load_target(f"{SPREAD}:oracle=terminated,horizon=3,{option}", SHARED)
    assert (target.film_simulator is not None) is is_filmed


def test_the_search_draws_where_agents_see_what_is_drawn(tmp_path):
    (tmp_path / "cameras.py").write_text(
        f"""
from policyfuzz.core.code_files import load_attribute

Mortals = load_attribute({f"{MORTALS}:MortalAgents"!r}, "environment")


class parallel_env(Mortals):
    metadata = {{"render_modes": ["rgb_array"]}}

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def reset(self, seed=None, options=None):
        seen, infos = super().reset(seed, options)
        return seen if self.render_mode else {{agent: one + 1 for agent, one in seen.items()}}, infos
"""
    )
    target = load_target(f"pettingzoo:{tmp_path / 'cameras.py'}:oracle=terminated,horizon=5", WAIT)
    assert target.simulator()._slots[0].env.render_mode == "rgb_array"
    assert hasattr(target.for_film().simulator(), "render")


def test_wrappers_are_put_around():
    name = f"pettingzoo:{MORTALS}:MortalAgents:oracle=terminated,horizon=5,wrap={MORTALS}:twice_the_reward"
    plain = load_target(name.partition(",wrap")[0], WAIT)
    wrapped = load_target(name, WAIT)
    case = np.array([[123.0]]), np.zeros(1, np.uint64)
    assert Runner(wrapped)(*case).returns[0] == 2 * Runner(plain)(*case).returns[0]


def test_the_same_seed_gives_goals_and_the_input_gives_places():
    policy = f"adversary={WAIT};agent={WAIT}"
    target = load_target("pettingzoo:mpe2.simple_adversary_v3:oracle=terminated,horizon=3", policy)
    row = episodes(target, 1)[0]
    found = Runner(target)(np.repeat(row, 8, axis=0), np.arange(8, dtype=np.uint64))
    first = found.states[:, 0]
    assert len(np.unique(first, axis=0)) == 2  # which of two landmarks is the goal


def run_further_checks(target):
    assert target.further_checks is not None
    return target.further_checks(Runner(target)(*episodes(target)), Runner)


def test_checks_compare_with_the_recorded_return_and_try_random_actions():
    target = load_target(f"{SPREAD}:oracle=return<-1000,horizon=5", SHARED)
    rates, examples, policy, can_fire = run_further_checks(target)
    assert rates.message == ("0 of 50 from the environment's own reset, 0 of 4 within the bounds")
    assert examples.message.startswith("returns of normal episodes: -")
    assert (policy.name, policy.level) == ("policy", Level.GOOD)
    assert "records nothing" in policy.message
    assert (can_fire.name, can_fire.level) == ("oracle can fire", Level.WARNING)


@pytest.mark.parametrize(
    ("environment", "policy"),
    [
        (TAG, f"adversary={WAIT};agent={WAIT}"),  # one action space, unlike observations
        ("pettingzoo:mpe2.simple_speaker_listener_v4", f"speaker={WAIT};listener={WAIT}"),  # both are unlike
    ],
)
def test_random_actions_are_drawn_for_agents_of_unlike_spaces(environment, policy):
    # no episode of so few steps crashes, so random actions are tried
    *_, can_fire = run_further_checks(load_target(f"{environment}:oracle=return<-1000,horizon=4", policy))
    assert can_fire.message.startswith("neither the policy nor random actions crash in 50 episodes")


def further_checks(name, policy=SHARED):
    """The further checks of a target, by their names."""
    return {one.name: one for one in run_further_checks(load_target(name, policy))}


def test_checks_tell_of_a_key_that_info_never_has():
    assert "colisions" in further_checks(f"{SPREAD}:oracle=info.colisions>3,horizon=4")["oracle keys"].message


@pytest.mark.parametrize("key", ["collisions", "agent_1.collisions", "agent_0.reward", "terminated"])
def test_checks_know_keys_that_are_told_by_us(key):
    assert "oracle keys" not in further_checks(f"{SPREAD}:oracle=info.{key}>3,horizon=4")


def test_a_return_of_longer_episodes_is_not_held_against_the_policy(monkeypatch):
    def recorded(uri, spaces, trust):
        return replace(load_policy(uri, spaces, trust), recorded_return=1e6)

    monkeypatch.setattr("policyfuzz.environments.joint_policy.load_policy", recorded)
    oracle = "oracle=info.collisions>1"
    assert further_checks(f"{SPREAD}:{oracle}")["policy"].level is Level.UNHEALTHY
    shorter = further_checks(f"{SPREAD}:{oracle},horizon=4")["policy"]
    assert (shorter.level, "another horizon" in shorter.message) == (Level.GOOD, True)


def test_a_function_of_this_process_is_shared_by_all_agents():
    policies = load_file(POLICIES, "policy")
    named = load_target(f"{SPREAD}:oracle=terminated,horizon=8", SHARED)
    given = as_target(SPREAD, policies.spread, oracle="terminated", horizon=8)
    assert (given.policy_uri, given.policy_name) == (None, "python:spread")
    inputs, seeds = episodes(named)
    np.testing.assert_array_equal(Runner(given)(inputs, seeds).states, Runner(named)(inputs, seeds).states)
    with pytest.raises(PolicyError, match="cannot act for agents with different spaces"):
        as_target(TAG, policies.wait, oracle="terminated")


def test_a_dictionary_gives_each_kind_of_agent_its_policy():
    policies = load_file(POLICIES, "policy")
    named = load_target(f"{TAG}:oracle=terminated,horizon=8", HUNT_AND_FLEE)
    objects = {"adversary": policies.hunt, "agent_0": policies.flee}
    given = as_target(TAG, objects, oracle="terminated", horizon=8)
    mixed = as_target(
        TAG, {"": policies.hunt, "agent": f"py:{POLICIES}:flee"}, oracle="terminated", horizon=8
    )
    inputs, seeds = episodes(named)
    wanted = Runner(named)(inputs, seeds).states
    for target in (given, mixed):
        assert (target.policy_uri, target.name.partition(":")[0]) == (None, "python")
        np.testing.assert_array_equal(Runner(target)(inputs, seeds).states, wanted)
    uris = {"adversary": f"py:{POLICIES}:hunt", "agent": f"py:{POLICIES}:flee"}
    assert as_target(TAG, uris, oracle="terminated", horizon=8).policy_uri == named.policy_uri
    with pytest.raises(UsageError, match="did you mean 'adversary'"):
        as_target(TAG, {**objects, "adversery": policies.hunt}, oracle="terminated")


@pytest.mark.slow
def test_a_target_file_with_a_policy_to_be_written_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert exit_code(["init", SPREAD, "-o", "spread.py"]) == 0
    assert f'"{SPREAD}"' in (tmp_path / "spread.py").read_text()
    assert exit_code(["check", "spread.py:make_target", "--episodes", "60"]) == 0
    assert "policy python:act" in capsys.readouterr().out


def test_the_code_of_the_environment_is_remembered(tmp_path):
    own = tmp_path / "mortals.py"
    own.write_text(MORTALS.read_text())
    name = f"pettingzoo:{own}:MortalAgents:oracle=terminated,horizon=3"
    before = load_target(name, WAIT).code_sha256
    own.write_text(MORTALS.read_text() + "# changed\n")
    assert before != load_target(name, WAIT).code_sha256
    assert load_target(f"{SPREAD}:oracle=terminated,horizon=3", SHARED).code_sha256 == ""
