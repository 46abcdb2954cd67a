import csv

import pytest
from PIL import Image

from policyfuzz.benchmarks.versus import raw
from policyfuzz.benchmarks.versus.circumstances import command
from policyfuzz.benchmarks.versus.goals import check
from policyfuzz.benchmarks.versus.report import write_report
from policyfuzz.benchmarks.versus.results import Results
from policyfuzz.benchmarks.versus.shortfalls import shortfalls
from policyfuzz.errors import CampaignError, UsageError


def spread(count: int, seed: int, episodes: int = 20_000) -> tuple[int, ...]:
    """So many claims, and as many more as the seed says, over all episodes."""
    count += seed
    return tuple(1 + position * episodes // max(count, 1) for position in range(count))


@pytest.fixture(scope="module")
def trials(made_trial):
    """Trials of contestants that find so many a trial, and one more with each further seed."""

    def make(seeds: int = 5, label: str = "acasxu", **counts: int):
        return [
            made_trial(name.replace("_", "-"), seed, spread(count, seed), label=label)
            for name, count in counts.items()
            for seed in range(seeds)
        ]

    return make


def goals_of(results) -> dict[str, bool | None]:
    return {goal.what: goal.is_met for goal in check(Results(results))}


def test_goals_on_acasxu_are_multiples_of_random(trials):
    met = goals_of(trials(default=1000, random=10))
    assert met["default has at least 4 times the distinct findings of random at 20,000 episodes"] is True
    assert met["default has at least 10 times the findings of random at 20,000 episodes"] is True
    met = goals_of(trials(default=60, random=10))
    assert met["default has at least 4 times the distinct findings of random at 20,000 episodes"] is True
    assert met["default has at least 10 times the findings of random at 20,000 episodes"] is False


def test_goals_are_not_measured_with_other_numbers_of_episodes(made_trial):
    short = [made_trial(name, numbers=(5,), episodes=300) for name in ("default", "random")]
    assert set(goals_of(short).values()) == {None}


def test_slow_peers_are_compared_within_their_own_episodes(trials, made_trial):
    peers = [made_trial("pypi-mdpfuzz", seed, spread(20, 0, 5000), episodes=5000) for seed in range(3)]
    what = "default has at least 10 times the distinct findings of pypi-mdpfuzz at 5,000 episodes"
    # of 1,000 findings over 20,000 episodes, 250 are within the first 5,000
    assert goals_of(trials(default=1000, random=1) + peers)[what] is True
    assert goals_of(trials(default=700, random=1) + peers)[what] is False


def test_goal_beside_random_needs_significance_where_crashes_are_rare(trials):
    rare = "default has more findings than random (A12 > 0.5, p < 0.05)"
    assert goals_of(trials(label="coopnavi", default=20, random=10))[rare] is True
    assert goals_of(trials(label="coopnavi", default=10, random=10))[rare] is False
    often = "default has no fewer findings than random (A12 >= 0.5)"
    assert goals_of(trials(label="coopnavi", default=2000, random=2000))[often] is True
    assert goals_of(trials(label="coopnavi", default=1990, random=2000))[often] is False


@pytest.mark.parametrize(("complete", "is_met"), [(9, True), (8, False)])
def test_goal_of_regions_wants_all_of_them_in_nine_of_ten_trials(made_trial, complete, is_met):
    some = [
        made_trial(
            seed=seed,
            label="ripple-10",
            numbers=(1, 2, 3),
            regions=(0, 1, 2 if seed < complete else 1),
            known_regions=3,
        )
        for seed in range(10)
    ]
    assert goals_of(some)["default finds all 3 regions in 90% of trials"] is is_met


@pytest.mark.parametrize(("simulated", "is_met"), [(8.0, True), (7.0, False)])
def test_goal_of_overhead_is_about_what_is_neither_simulation_nor_validation(made_trial, simulated, is_met):
    met = goals_of([made_trial(numbers=(1,), simulated_seconds=simulated)])
    assert met["default spends at most 25% of wall time on the search and the store"] is is_met


def test_shortfalls_are_where_default_is_not_better(trials):
    results = Results(trials(label="coopnavi", default=20, random=10, cma_me=40))
    (line,) = shortfalls(results, [])
    assert line.startswith(
        "coopnavi, 20,000 episodes, `default` against `cma-me`: below in findings (22.0 against"
    )
    results = Results(trials(label="coopnavi", default=20, random=20))
    (line,) = shortfalls(results, [])
    assert "`default` against `random`: not above beyond chance in findings" in line


def test_shortfalls_say_so_where_there_are_none(trials):
    results = Results(trials(label="coopnavi", default=50, random=10))
    assert shortfalls(results, [])[0].startswith("nothing that was measured")


def test_trials_of_different_lengths_are_not_mixed(made_trial):
    results = Results([made_trial(seed=0), made_trial(seed=1, episodes=300)])
    with pytest.raises(CampaignError, match="300 and 20000 episodes"):
        results.contests("acasxu")


def test_command_gives_the_results_again(made_trial):
    made = made_trial("random", 2, label="easy", target="ripple:probability=0.1", episodes=300)
    expected = "policyfuzz bench versus --target ripple:probability=0.1 --contestant random --seeds 3"
    assert command(Results([made])) == f"{expected} --episodes 300"


@pytest.fixture(scope="module")
def page(trials, made_trial, tmp_path_factory):
    """The page of made-up trials, to be read only."""
    folder = tmp_path_factory.mktemp("versus")
    made = trials(default=100, mdpfuzz=30, reward=30, random=10)
    made += trials(label="coopnavi", default=10, random=12)
    made += [made_trial("pypi-mdpfuzz", 0, (40, 50), episodes=5000, verdicts=(1, 0))]
    for trial in made:
        trial.save(folder / "raw")
    failed = made_trial("pypi-mdpfuzz", label="coopnavi").task
    raw.note_failure(failed, folder / "raw", "no mixture\n  of collinear states")
    notes = folder / "notes.md"
    notes.write_text("Written by hand.")
    path = folder / "docs" / "versus.md"
    write_report(folder, path, notes)
    return path


def test_page_has_the_numbers(page):
    text = page.read_text()
    assert "policyfuzz bench versus --target acasxu --target coopnavi --contestant default" in text
    assert "a machine" in text
    assert "policyfuzz 1.2.3" in text
    assert "seeds: 0 to 4 for default, mdpfuzz, reward, random; 0 for pypi-mdpfuzz" in text
    assert "| default | 5 | 102 (101-103) | 102 (101-103) |" in text, "100 to 104 findings"
    assert "8.50 x (A12 1.00 p 0.0" in text, "102 against 12"
    assert "`pypi-mdpfuzz` 1 invalid of 2 claims" in text
    assert "`pypi-mdpfuzz` could not run: no mixture of collinear states" in text
    assert "| acasxu | findings | 32.0 | 32.0 | 0.50 | 1 | no difference |" in text
    assert "**missed**" in text
    assert "- coopnavi: missed: default has more findings than random" in text
    assert text.rstrip().endswith("## Notes\n\nWritten by hand.")


def test_page_has_its_pictures_and_numbers_beside_it(page):
    for name in ("versus-episodes.png", "versus-time.png"):
        assert f"({name})" in page.read_text()
        with Image.open(page.with_name(name)) as picture:
            assert min(picture.size) > 300
    with page.with_name("versus-trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    whole = [row for row in rows if row["contestant"] == "default" and row["episodes"] == "20000"]
    assert [row["findings"] for row in whole if row["target"] == "acasxu"] == [
        "100",
        "101",
        "102",
        "103",
        "104",
    ]
    assert {row["episodes"] for row in rows if row["target"] == "acasxu"} == {"5000", "20000"}


def test_curves_are_written_for_every_trial(page):
    with (page.parent.parent / "curves.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["contestant"] == "random" and row["seed"] == "0"]
    ends = [(row["target"], row["findings"]) for row in rows if row["episodes"] == "20000"]
    assert ends == [("acasxu", "10"), ("coopnavi", "12")]
    assert len(rows) == 2 * 101


def test_report_of_an_empty_folder_gets_a_message(tmp_path):
    with pytest.raises(CampaignError, match="no raw files"):
        write_report(tmp_path, None, None)


def test_notes_that_are_not_there_get_a_message(made_trial, tmp_path):
    made_trial(numbers=(1,)).save(tmp_path / "raw")
    with pytest.raises(UsageError, match=r"cannot read the notes .*none\.md"):
        write_report(tmp_path, tmp_path / "page.md", tmp_path / "none.md")
