import csv
from dataclasses import replace

import pytest

from benchmarks.versus import kept
from benchmarks.versus.raw import code_digest
from benchmarks.versus.report import write_report
from benchmarks.versus.results import Results
from benchmarks.versus.trials import run_all
from policyfuzz.core.errors import CampaignError, UsageError


def of_now(trial):
    """The same, run with the code as it is."""
    return replace(trial, about=trial.about | {"code": code_digest()})


def keep(trials, folder):
    """What another machine reads after the page of `trials` was written."""
    for trial in trials:
        trial.save(folder / "raw")
    write_report(folder, folder / "page.md", None, references=folder)
    return kept.load(folder / "page-trials.csv")


def test_kept_trials_give_the_tables_that_their_raw_files_gave(trials, made_trial, tmp_path):
    made = [*trials(default=30, random=10), made_trial("pypi-mdpfuzz", 0, (40, 50), episodes=5000)]
    earlier = keep(made, tmp_path / "first")
    write_report(tmp_path / "second", tmp_path / "page.md", None, references=tmp_path, earlier=earlier)
    pages = [(folder / "page.md").read_text() for folder in (tmp_path / "first", tmp_path)]
    first, second = (page.partition("## acasxu")[2].partition("## Does")[0] for page in pages)
    assert first == second != ""
    assert "21 of these trials are of earlier runs" in pages[1]
    again = kept.load(tmp_path / "page-trials.csv")
    assert sorted(map(kept.origin_of, again)) == sorted(map(kept.origin_of, earlier)), "nothing is lost"
    assert {one.task: one.metrics for one in again}.keys() == {
        one.task: one.metrics for one in earlier
    }.keys()


def test_raw_files_go_before_what_was_kept(made_trial, tmp_path):
    earlier = keep([made_trial("random", 0, (1, 2)), made_trial("random", 1, (3,))], tmp_path / "first")
    made_trial("random", 0, (5, 6, 7)).save(tmp_path / "raw")
    results = Results.load(tmp_path / "raw", tmp_path, earlier)
    (contest,) = results.contests("acasxu")
    assert contest.find("random").values("findings").tolist() == [3, 1]
    assert len(results.measured) == 1
    assert len(results.drawn("acasxu", "random")) == 1


def test_default_of_other_code_is_not_mixed_with_that_of_now(made_trial, tmp_path):
    earlier = keep([made_trial("default", seed, (1,)) for seed in range(3)], tmp_path / "first")
    assert all(map(kept.is_outdated, earlier))
    assert len(Results.load(tmp_path / "raw", tmp_path, earlier).trials) == 3, "better than nothing"
    write_report(tmp_path, tmp_path / "page.md", None, references=tmp_path, earlier=earlier)
    assert "another state of its code than the present one on acasxu" in (tmp_path / "page.md").read_text()
    of_now(made_trial("default", 0, (1, 2))).save(tmp_path / "raw")
    write_report(tmp_path, tmp_path / "page.md", None, references=tmp_path, earlier=earlier)
    assert "another state of its code" not in (tmp_path / "page.md").read_text()
    assert len(Results.load(tmp_path / "raw", tmp_path, earlier).trials) == 1


def test_kept_trials_are_not_run_again_unless_the_default_has_changed(made_trial, tmp_path):
    made = [made_trial("random"), of_now(made_trial("default", 0)), made_trial("default", 1)]
    earlier = keep(made, tmp_path / "first")
    tasks = [trial.task for trial in made]
    current = [one for one in earlier if not kept.is_outdated(one)]
    assert {one.task for one in current} == set(tasks[:2])
    assert list(run_all(tasks[:2], tmp_path / "raw", 1, print, earlier)) == []


def test_a_part_of_a_kept_trial_counts_if_its_numbers_were_kept(made_trial, tmp_path):
    earlier = keep([made_trial("random", 0, (10, 9000))], tmp_path / "first")
    made_trial("pypi-mdpfuzz", 0, (40,), episodes=5000).save(tmp_path / "raw")
    whole, part = Results.load(tmp_path / "raw", tmp_path, earlier).contests("acasxu")
    assert [group.contestant for group in whole.groups] == ["random"]
    assert [group.contestant for group in part.groups] == ["pypi-mdpfuzz"], "of random nobody knows the part"


def test_files_that_hold_no_trials_are_refused(made_trial, tmp_path):
    keep([made_trial("random", 0, (1,))], tmp_path)
    path = tmp_path / "page-trials.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0]["findings"] = "many"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(CampaignError, match="holds no trials of the bench"):
        kept.load(path)
    path.write_text("target,contestant\nacasxu,random\n")
    with pytest.raises(CampaignError, match="origin"):
        kept.load(path)
    with pytest.raises(UsageError, match="cannot read the kept trials"):
        kept.load(tmp_path / "nothing.csv")
