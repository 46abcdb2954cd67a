from policyfuzz.benchmarks.versus.commands import commands
from policyfuzz.benchmarks.versus.contestants import contestant_names
from policyfuzz.benchmarks.versus.results import Results
from policyfuzz.benchmarks.versus.targets import ENTRIES

START = "policyfuzz bench versus"


def test_command_gives_the_results_again(made_trial):
    made = made_trial("random", 2, label="easy", target="ripple:probability=0.1", episodes=300)
    expected = f"{START} --target ripple:probability=0.1 --contestant random --seeds 3"
    assert commands(Results([made])) == [f"{expected} --episodes 300"]


def test_command_has_the_episodes_that_are_usual_for_another_target(trials):
    made = trials(1, label="ripple-2", episodes=1000, random=1)
    made += trials(1, label="cartpole", episodes=1000, random=1)
    expected = f"{START} --target ripple-2 --target cartpole --contestant random --seeds 1 --episodes 1000"
    assert commands(Results(made)) == [expected]


def test_command_has_the_episodes_where_slow_peers_have_fewer(trials, made_trial):
    made = [*trials(1, episodes=6000, random=1), made_trial("pypi-mdpfuzz", episodes=5000)]
    expected = f"{START} --target acasxu --contestant random --contestant pypi-mdpfuzz"
    assert commands(Results(made)) == [f"{expected} --seeds 1 --peer-seeds 1 --episodes 6000"]


def test_command_leaves_out_what_is_usual(made_trial):
    made = [
        made_trial(name, label=label, episodes=entry.slow_peer_episodes if "pypi" in name else entry.episodes)
        for label, entry in ENTRIES.items()
        for name in contestant_names()
        if (label, name) != ("bipedal", "pypi-mdpfuzz")
    ]
    results = Results(made, {("bipedal", "pypi-mdpfuzz"): "it could not run"})
    assert commands(results) == [f"{START} --seeds 1 --peer-seeds 1 --public-networks DIR"]


def test_there_are_several_commands_where_not_all_had_the_same(trials):
    made = trials(2, label="acasxu", random=1) + trials(3, label="acasxu", reward=1)
    made += trials(2, label="coopnavi", episodes=500, random=1)
    assert commands(Results(made)) == [
        f"{START} --target acasxu --contestant reward --seeds 3",
        f"{START} --target acasxu --contestant random --seeds 2",
        f"{START} --target coopnavi --contestant random --seeds 2 --episodes 500",
    ]


def test_command_can_be_pasted_into_a_shell(made_trial):
    made = made_trial(label="x", target="gym:My Task-v0", episodes=5000)
    assert "--target 'gym:My Task-v0' " in commands(Results([made]))[0]
