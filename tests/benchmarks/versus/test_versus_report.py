import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
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
def page(trials, made_trial, made_reference, tmp_path_factory):
    """The page of made-up trials, to be read only."""
    folder = tmp_path_factory.mktemp("versus")
    made = trials(default=100, mdpfuzz=30, reward=30, random=10, half_noise=20)
    made += trials(label="coopnavi", default=10, random=32)
    made += [made_trial("pypi-mdpfuzz", 0, (40, 50), episodes=5000, verdicts=(1, 0))]
    made += [replace(made_trial("cma-me", seed, (40,)), episodes=1234 + seed) for seed in range(2)]
    for trial in made:
        trial.save(folder / "raw")
    # a quarter of the random crashes lies where all made-up findings are
    crashes = made_reference(np.array([[0.0] * 4, [1.0] * 4, [0.5] * 4, [0.3] * 4]))
    crashes.save(folder / "references" / "acasxu.npz")
    failed = made_trial("pypi-mdpfuzz", label="coopnavi").task
    raw.note_failure(failed, folder / "raw", "no mixture\n  of collinear states")
    notes = folder / "notes.md"
    notes.write_text("Written by hand.")
    path = folder / "docs" / "versus.md"
    write_report(folder, path, notes, references=folder / "references")
    return path


def test_page_has_the_numbers(page):
    text = page.read_text()
    assert text.count("- command: `python -m benchmarks versus --seeds 10`") == 1, "all trials have it"
    assert "a machine" in text
    assert "policyfuzz 1.2.3" in text
    assert "0 to 9 for default, mdpfuzz, reward, random, half-noise; 0 for pypi-mdpfuzz; 0, 1 for" in text
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
    write_report(tmp_path, tmp_path / "page.md", None, references=tmp_path)
    text = (tmp_path / "page.md").read_text()
    assert "- command" not in text
    assert "- machine: a machine" in text


def test_page_begins_with_what_is_bad_for_us(page):
    text = page.read_text()
    sections = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert sections[:3] == [
        "Where `default` falls short",
        "Failure mass",
        "How the lead depends on what is counted",
    ]
    first = text.partition("## Failure mass")[0]
    assert "| coopnavi | 20,000 | findings | `random` | 14.5 against 36.5, A12 0.00, p " in first
    assert "| acasxu |" not in first, "nobody is above us there"


def test_page_of_a_default_that_is_below_nobody_says_on_how_many_targets_that_is_known(trials, tmp_path):
    for trial in trials(default=100, random=10):
        trial.save(tmp_path / "raw")
    write_report(tmp_path, tmp_path / "page.md", None, references=tmp_path)
    text = (tmp_path / "page.md").read_text()
    assert "is `default` below a contestant beyond chance" in text
    assert f"on 0 of {len(ENTRIES)} targets" in text
    assert "Not measured: no target of this run has a reference set." in text


def test_page_leads_with_failure_mass(page):
    text = page.read_text()
    assert "| contestant | acasxu, 0.05 | acasxu, 0.1 |" in text
    assert "| default | 0.25 | 0.25 |" in text
    assert "acasxu: 4 random crashes, 4 of 1,000 valid draws" in text


def test_page_shows_how_the_lead_falls(page):
    rows = [line for line in page.read_text().splitlines() if line.startswith("| acasxu | half-noise |")]
    # 104.5 against 24.5 by every count, and nothing by failure mass
    assert rows == [f"| acasxu | half-noise |{' 4.27 x |' * 6} - | - | 1.00 x | 1.00 x |"]


def test_page_names_missing_rows(page):
    text = page.read_text().partition("## Missing rows")[2]
    assert "- ripple-50: all\n" in text
    ours = "`mdpfuzz`, `reward`, `mdpfuzz-published`, `reward-published`"
    assert f"- coopnavi: {ours}, `pypi-mdpfuzz`, `pypi-mdpfuzz-no-coverage`, `cma-me`," in text
    missing = "`mdpfuzz-published`, `reward-published`, `pypi-mdpfuzz-no-coverage`, `curiosity`"
    assert f"- acasxu: {missing}\n" in text


def test_published_page_has_the_form_that_is_written(page):
    written, published = page.read_text(), (DOCS / "versus.md").read_text()
    introduction = written.partition("\n## ")[0]
    assert published.startswith(introduction)
    assert published.count("\n- command: `python -m benchmarks versus --") > 1
    labels = [f"## {label}" for label in ("acasxu", "coopnavi")]
    general = [line for line in written.splitlines() if line.startswith("## ") and line not in labels]
    at = general.index("## Does freshness help?")
    heads = [line for line in published.splitlines() if line.startswith("## ")]
    measured = [label for label in ENTRIES if f"## {label}" in heads]
    assert heads == [*general[:at], *(f"## {label}" for label in measured), *general[at:]]
    missing = published.partition("## Missing rows")[2]
    assert all(f"- {label}: all\n" in missing for label in ENTRIES if label not in measured)


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
    assert "for new by the very rule of the column **distinct**" in text


def test_page_lists_goals_that_nobody_measured(page):
    text = page.read_text()
    assert "| ripple-50 | all goals of this target | did not run | not measured |" in text
    assert "| pypi-mdpfuzz could not run | not measured |" in text
    assert "| pypi-mdpfuzz-no-coverage did not run | not measured |" in text
    assert "pypi-mdpfuzz: 1 of 3 seeds" in text


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
    assert ends == [("acasxu", "10"), ("coopnavi", "32")]
    assert len(rows) == 2 * 101
    masses = {row["target"]: row["mass_near"] for row in rows if row["episodes"] == "20000"}
    assert masses == {"acasxu": "0.25", "coopnavi": ""}


def test_trials_that_were_judged_by_different_rules_are_not_mixed(made_trial):
    first, second = made_trial(seed=0, numbers=(1,)), made_trial("random", seed=0, numbers=(1,))
    other = replace(second, task=replace(second.task, rules="others"))
    with pytest.raises(CampaignError, match="default and random on acasxu were judged by different rules"):
        Results([first, other])
    Results([first, second])


def test_report_of_an_empty_folder_gets_a_message(tmp_path):
    with pytest.raises(CampaignError, match="no raw files"):
        write_report(tmp_path, None, None)


def test_notes_that_are_not_there_get_a_message(made_trial, tmp_path):
    made_trial(numbers=(1,)).save(tmp_path / "raw")
    with pytest.raises(UsageError, match=r"cannot read the notes .*none\.md"):
        write_report(tmp_path, tmp_path / "page.md", tmp_path / "none.md", references=tmp_path)
