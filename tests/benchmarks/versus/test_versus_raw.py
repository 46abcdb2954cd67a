import dataclasses

import numpy as np
import pytest

from benchmarks.versus import raw
from policyfuzz.core.errors import CampaignError


def test_what_is_loaded_is_what_was_saved(made_trial, tmp_path):
    trial = made_trial(numbers=(3, 8))
    trial.save(tmp_path)
    (loaded,) = raw.load_all(tmp_path)
    for field in dataclasses.fields(trial):
        assert np.array_equal(getattr(loaded, field.name), getattr(trial, field.name)), field.name
    assert trial.task.file(tmp_path) == tmp_path / "acasxu" / "default" / "0.npz"
    assert [path.name for path in trial.task.file(tmp_path).parent.iterdir()] == ["0.npz"]


def test_result_is_found_for_its_own_task_only(made_trial, tmp_path):
    trial = made_trial(numbers=(3,))
    assert raw.find(trial.task, tmp_path) is None
    trial.save(tmp_path)
    assert raw.find(trial.task, tmp_path) is not None
    with pytest.raises(CampaignError, match="episodes was 20000, now 300"):
        raw.find(dataclasses.replace(trial.task, episodes=300), tmp_path)
    with pytest.raises(CampaignError, match="policy_sha256 was '', now 'f00'"):
        raw.find(dataclasses.replace(trial.task, policy_sha256="f00"), tmp_path)
    with pytest.raises(CampaignError, match="rules was '', now 'other'"):
        raw.find(dataclasses.replace(trial.task, rules="other"), tmp_path)


def test_same_policy_may_lie_elsewhere(made_trial, tmp_path):
    trial = made_trial(numbers=(3,))
    trial.save(tmp_path)
    assert raw.find(dataclasses.replace(trial.task, policy="npz:elsewhere.npz"), tmp_path) is not None


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 half a file", b"nonsense"])
def test_damaged_file_gets_a_message(made_trial, tmp_path, content):
    path = made_trial().task.file(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(CampaignError, match=r"0\.npz holds no trial of the bench") as caught:
        list(raw.load_all(tmp_path))
    assert "delete it" in caught.value.hint


def test_cut_file_gets_a_message(made_trial, tmp_path):
    trial = made_trial(numbers=tuple(range(1, 500)))
    trial.save(tmp_path)
    path = trial.task.file(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CampaignError, match="holds no trial"):
        raw.find(trial.task, tmp_path)


def test_file_of_another_format_is_refused_and_left_alone(made_trial, tmp_path, monkeypatch):
    trial = made_trial(numbers=(3,))
    trial.save(tmp_path)
    monkeypatch.setattr(raw, "FORMAT", raw.FORMAT + 1)
    with pytest.raises(CampaignError, match=r"0\.npz has format 2 .* writes format 3") as caught:
        raw.find(trial.task, tmp_path)
    assert "another one with -o" in caught.value.hint
    assert trial.task.file(tmp_path).exists()


def test_half_written_file_is_passed_over(made_trial, tmp_path):
    trial = made_trial()
    trial.save(tmp_path)
    (trial.task.file(tmp_path).parent / ".1.npz.4711").write_bytes(b"half")
    (trial.task.file(tmp_path).parent / ".1.npz").write_bytes(b"half")
    assert len(list(raw.load_all(tmp_path))) == 1


def test_failure_is_remembered_until_there_is_a_result(made_trial, tmp_path):
    trial = made_trial("pypi-mdpfuzz", label="cartpole")
    raw.note_failure(trial.task, tmp_path, "it cannot count")
    assert raw.failures(tmp_path) == {("cartpole", "pypi-mdpfuzz"): "it cannot count"}
    trial.save(tmp_path)
    assert raw.failures(tmp_path) == {}


def test_folder_that_cannot_be_written_gets_a_message(made_trial, tmp_path):
    (tmp_path / "acasxu").write_text("a file where a folder should be")
    with pytest.raises(CampaignError, match="cannot write"):
        made_trial().save(tmp_path)


def test_command_is_told_without_the_folders_of_this_machine(monkeypatch, tmp_path):
    arguments = ["versus", "--kept", "docs/trials.csv", "-o", str(tmp_path / "out"), "--seeds", "3"]
    monkeypatch.setattr("sys.argv", ["benchmarks", *arguments])
    assert raw.surroundings()["command"] == (
        "python -m benchmarks versus --kept docs/trials.csv -o out --seeds 3"
    )
