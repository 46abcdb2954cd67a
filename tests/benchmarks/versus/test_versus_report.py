import csv
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.versus import raw
from benchmarks.versus.report import write_report
from benchmarks.versus.results import Results
from benchmarks.versus.targets import ENTRIES
from policyfuzz.core.errors import CampaignError, UsageError

DOCS = Path(__file__).parents[3] / "docs"


def test_first_part_of_a_trial_counts_only_for_those_who_do_not_plan_ahead(made_trial):
    long = [made_trial(name) for name in ("default", "reward", "cma-me", "curiosity")]
    results = Results([*long, made_trial("pypi-mdpfuzz", episodes=5000)])
    whole, part = results.contests("acasxu")
    assert [group.contestant for group in whole.groups] == ["default", "reward", "cma-me", "curiosity"]
    assert [group.contestant for group in part.groups] == ["default", "reward", "pypi-mdpfuzz"]


def test_trials_of_different_lengths_are_not_mixed(made_trial):
    results = Results([made_trial(seed=0), made_trial(seed=1, episodes=300)])
    with pytest.raises(CampaignError, match="300 and 20000 episodes"):
        results.contests("acasxu")


@pytest.fixture(scope="module")
def page(trials, made_trial, tmp_path_factory):
    """The page of made-up trials, to be read only."""
    folder = tmp_path_factory.mktemp("versus")
    made = trials(default=100, mdpfuzz=30, reward=30, random=10)
    made += trials(label="coopnavi", default=10, random=12)
    made += [made_trial("pypi-mdpfuzz", 0, (40, 50), episodes=5000, verdicts=(1, 0))]
    made += [replace(made_trial("cma-me", seed, (40,)), episodes=1234 + seed) for seed in range(2)]
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
    assert text.count("- command: `python -m benchmarks versus --seeds 10`") == 1, "all trials have it"
    assert "a machine" in text
    assert "policyfuzz 1.2.3" in text
    assert "seeds: 0 to 9 for default, mdpfuzz, reward, random; 0 for pypi-mdpfuzz; 0, 1 for cma-me" in text
    assert "| default | 10 | 104 (103-106) | 104 (103-106) |" in text, "100 to 109 findings"
    assert "7.21 x (A12 1.00 p <0.001" in text, "104.5 against 14.5"
    assert "Within the 5,000 episodes that `pypi-mdpfuzz` had; of longer trials of our strategies" in text
    assert "`pypi-mdpfuzz` 1 invalid of 2 claims" in text
    assert "`pypi-mdpfuzz` could not run: no mixture of collinear states" in text
    assert "| acasxu | findings | 34.5 | 34.5 | 0.50 | 1 | no difference |" in text
    assert "**missed**" in text
    assert "| cma-me | 2 (2 broke off) |" in text
    assert text.rstrip().endswith("## Notes\n\nWritten by hand.")


def test_trials_without_a_recorded_command_make_a_page(made_trial, tmp_path):
    trial = made_trial(numbers=(1,))
    del trial.about["command"]
    trial.save(tmp_path / "raw")
    write_report(tmp_path, tmp_path / "page.md", None)
    text = (tmp_path / "page.md").read_text()
    assert "- command" not in text
    assert "- machine: a machine" in text


def test_published_page_has_the_form_that_is_written(page):
    written, published = page.read_text(), (DOCS / "versus.md").read_text()
    introduction = written.partition("\n- command: ")[0]
    assert published.startswith(introduction)
    assert published.count("\n- command: `python -m benchmarks versus --") > 1
    general = [line for line in written.splitlines() if line.startswith("## ") and " " in line[3:]]
    assert general == ["## What must hold", "## Does freshness help?"]
    labels = [f"## {label}" for label in ENTRIES]
    wanted = [general[0], "## Curves", *labels, general[1], "## Notes"]
    assert [line for line in published.splitlines() if line.startswith("## ")] == wanted


def test_published_numbers_have_the_columns_that_are_written(page):
    heads = [
        file.read_text().partition("\n")[0]
        for file in (page.with_name("versus-trials.csv"), DOCS / "versus-trials.csv")
    ]
    assert heads[0] == heads[1]


def test_page_tells_what_guides_whom(page):
    text = page.read_text()
    assert "`default` sees the oracle's margin" in text
    assert "They never see the margin." in text
    assert "new at a distance of 0.01, the very radius of the column **distinct**" in text


def test_page_lists_goals_that_nobody_measured(page):
    text = page.read_text()
    assert "| ripple-50 | all goals of this target | did not run | not measured |" in text
    assert "| pypi-mdpfuzz: 1 of 3 seeds | not measured |" in text
    assert "| pypi-mdpfuzz could not run | not measured |" in text
    assert "| pypi-mdpfuzz-no-coverage did not run | not measured |" in text


def test_page_has_its_pictures_and_numbers_beside_it(page):
    for name in ("versus-episodes.png", "versus-time.png"):
        assert f"({name})" in page.read_text()
        with Image.open(page.with_name(name)) as picture:
            assert min(picture.size) > 300
    with page.with_name("versus-trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    whole = [row for row in rows if row["contestant"] == "default" and row["episodes"] == "20000"]
    found = [row["findings"] for row in whole if row["target"] == "acasxu"]
    assert found == [str(count) for count in range(100, 110)]
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
