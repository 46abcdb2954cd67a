"""A user without a home, who may write nowhere but in the folder of the campaign."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

#: An id that has no entry in the password file and owns nothing.
STRANGER = 54_321
#: Becomes that user, who may read all files: Python may be installed in somebody's home.
BECOME = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
BECOME += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]

pytestmark = pytest.mark.slow


@pytest.fixture
def folder():
    """A folder that anybody may use: those of pytest are closed to other users."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def as_stranger(folder):
    """Run a command line as a user without home, name and temporary folder."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can run a command as another user, and only with setpriv")
    if subprocess.run([*BECOME, sys.executable, "-c", "import numpy"], capture_output=True).returncode:
        pytest.skip("this machine allows no user who can read all files")

    def run(*arguments, **variables):
        keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
        return subprocess.run(
            [*BECOME, sys.executable, "-m", "policyfuzz", *map(str, arguments)],
            cwd=folder,
            env=keep | {"TMPDIR": "/nonexistent/tmp"} | variables,
            capture_output=True,
            text=True,
        )

    return run


def test_campaign_and_replay_need_no_home(as_stranger, folder):
    home = {"HOME": "/nonexistent"}
    fuzzed = as_stranger("fuzz", "acasxu", "-j1", "--max-execs", 3000, "-o", "c", "--ui", "none", **home)
    assert (fuzzed.returncode, fuzzed.stderr) == (1, ""), fuzzed
    replayed = as_stranger("replay", "c", 1, **home)
    assert (replayed.returncode, replayed.stderr) == (1, ""), replayed
    assert "exactly as recorded" in replayed.stdout
    assert (folder / "c" / "findings" / "1.png").stat().st_size > 0


def test_campaign_leaves_no_folder_instead_of_a_home(as_stranger, folder):
    fuzzed = as_stranger("fuzz", "acasxu", "--max-execs", 64, "-o", "c", "--ui", "none")
    assert (fuzzed.returncode, fuzzed.stderr) == (0, ""), fuzzed
    assert [item.name for item in folder.iterdir()] == ["c"]
