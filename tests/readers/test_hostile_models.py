"""Every model file of the table is refused: exit code 2, a sentence, bounded memory, nothing run."""

import resource
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the extra onnx")
pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
from policyfuzz.cli.main import exit_code
from policyfuzz.policies import onnx_trial
from tests.readers.hostile_models import TABLE

#: More than any of these commands needs, less than any bomb of the table.
ROOM_BYTES = 2 << 30


@pytest.fixture(scope="module")
def everything_imported(tmp_path_factory):
    """Libraries and compiled kernels take address space, once."""
    import onnxruntime  # noqa: F401
    import stable_baselines3  # noqa: F401

    path = tmp_path_factory.mktemp("good") / "p.npz"
    np.savez(path, W0=np.ones((4, 2)))
    assert exit_code(["check", "gym:CartPole-v1", "--policy", f"npz:{path}", "--episodes", "20"]) in (0, 3)
    for target in ("acasxu", "coopnavi", "bipedal"):
        assert exit_code(["check", target, "--episodes", "20"]) == 0


@pytest.fixture
def bounded_memory(everything_imported):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def refused(name, folder, capsys, monkeypatch):
    """Read the file `name` of the table; raises unless it is refused in words."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(onnx_trial, "TRIAL_SECONDS", 5.0)  # the loop that never ends costs this
    np.savez(folder / "p.npz", W0=np.ones((4, 2)))
    arguments = TABLE[name](folder)
    before = sorted(folder.iterdir())
    code = exit_code(arguments)
    said = capsys.readouterr()
    assert code == 2, said.err
    assert "\npolicyfuzz: " in f"\n{said.err}"  # what is being done may come before it
    assert "Traceback" not in said.err
    assert len(said.err) < 2000
    assert sorted(folder.iterdir()) == before, "something was written"


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
@pytest.mark.usefixtures("bounded_memory")
def test_hostile_model_file_is_refused(name, tmp_path, capsys, monkeypatch):
    refused(name, tmp_path, capsys, monkeypatch)


def test_table_has_more_files_than_the_attackers_tried(record_property):
    record_property("hostile model files", len(TABLE))
    assert len(TABLE) >= 60
