"""Episodes as a Minari dataset."""

from dataclasses import replace

import numpy as np
import pytest

from policyfuzz import CampaignReader, load_target
from policyfuzz.cli.main import exit_code
from policyfuzz.core.errors import UsageError
from policyfuzz.core.recording import record
from policyfuzz.report.minari import RecordedEpisode, check_dataset_name, write_minari
from policyfuzz.report.ranking import representatives

RIPPLE = "ripple:dimensions=3,probability=0.02"


def recorded(target, row, seed, **others):
    row = np.array(row)
    return RecordedEpisode(record(target, row, seed), 7, seed, row, **others)


def test_recording_keeps_what_the_policy_saw():
    target = load_target(RIPPLE)
    row = np.array([0.1, 0.2, 0.3])
    recording = record(target, row, 1)
    assert len(recording.observations) == len(recording.actions) + 1 == len(recording.rewards)
    saw = np.abs(recording.observations[:-1]).max(axis=1, keepdims=True)
    assert np.array(recording.actions) == pytest.approx(0.5 * np.array(recording.observations[:-1]) / saw)


@pytest.mark.parametrize("name", ["findings", "findings-v", "a b-v0", "x.y-v0"])
def test_folder_that_minari_could_not_load_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="findings-v0"):
        check_dataset_name(tmp_path / name)


def test_folder_that_exists_is_refused(tmp_path):
    (tmp_path / "f-v0").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        check_dataset_name(tmp_path / "f-v0")


def test_episodes_read_back_as_they_were(tmp_path):
    minari = pytest.importorskip("minari")
    target = load_target(RIPPLE)
    episodes = [
        recorded(target, [0.1, 0.2, 0.3], 2**63 - 1),
        recorded(target, [0.5, 0.5, 0.5], 3, is_witness=True),
    ]
    write_minari(tmp_path / "f-v0", target, episodes)
    dataset = minari.MinariDataset(tmp_path / "f-v0" / "data")
    assert dataset.total_episodes == 2
    for one, stored in zip(episodes, dataset, strict=True):
        assert np.array_equal(stored.observations, np.array(one.recording.observations))
        assert np.array_equal(stored.actions, np.array(one.recording.actions))
        assert np.array_equal(stored.rewards, one.recording.rewards[1:])
        assert set(stored.infos["case_seed"].tolist()) == {one.case_seed}
        assert set(stored.infos["finding"].tolist()) == {7}
        assert set(stored.infos["is_witness"].tolist()) == {one.is_witness}
        assert np.array_equal(stored.infos["input"][0], one.input)
        is_caught = bool(one.recording.executions.crashed[0])
        assert (bool(stored.terminations[-1]), bool(stored.truncations[-1])) == (is_caught, not is_caught)
        assert not stored.terminations[:-1].any()
    assert [path.name for path in tmp_path.iterdir()] == ["f-v0"]


@pytest.mark.slow
def test_spaces_are_those_of_the_target(tmp_path):
    minari = pytest.importorskip("minari")
    target = load_target("acasxu")
    row = target.inputs.sample(np.random.default_rng(0), 1)[0]
    write_minari(tmp_path / "f-v0", target, [recorded(target, row, 1)])
    spec = minari.MinariDataset(tmp_path / "f-v0" / "data").spec
    assert spec.action_space.n == 5
    assert spec.observation_space.shape == (5,)


def test_observations_that_are_no_numbers_are_refused(tmp_path):
    pytest.importorskip("minari")
    target = load_target(RIPPLE)
    episode = recorded(target, [0.1, 0.2, 0.3], 1)
    texts = replace(episode, recording=replace(episode.recording, observations=["a"] * 51))
    with pytest.raises(UsageError, match="arrays of numbers only"):
        write_minari(tmp_path / "f-v0", target, [texts])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_findings_are_exported_by_the_command_line(tmp_path, capsys):
    minari = pytest.importorskip("minari")
    folder = tmp_path / "c"
    assert exit_code(["fuzz", RIPPLE, "--max-execs", "600", "-o", str(folder), "--ui", "none"]) == 1
    out = tmp_path / "findings-v0"
    assert exit_code(["export", str(folder), "--what", "minari", "--top", "3", "-o", str(out)]) == 0
    assert "wrote 3 episodes" in capsys.readouterr().out
    dataset = minari.MinariDataset(out / "data")
    numbers = [int(one.infos["finding"][0]) for one in dataset]
    assert numbers == [one.id for one in representatives(CampaignReader(folder), 3)]
    assert all(one.terminations[-1] for one in dataset)


@pytest.mark.slow
def test_witnesses_are_exported_as_demonstrations(tmp_path, capsys):
    minari = pytest.importorskip("minari")
    folder, out = tmp_path / "c", tmp_path / "avoided-v0"
    options = ["--max-execs", "6000", "-o", str(folder), "--ui", "none"]
    assert exit_code(["fuzz", "acasxu", *options]) == 1
    assert exit_code(["triage", str(folder), "--per-mode", "20"]) == 1
    assert exit_code(["export", str(folder), "--what", "minari", "--top", "3", "-o", str(out)]) == 0
    flags = [bool(one.infos["is_witness"][0]) for one in minari.MinariDataset(out / "data")]
    assert True in flags
    assert False in flags
