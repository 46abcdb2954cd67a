import subprocess
import sys
from pathlib import Path

import pytest

from policyfuzz.cli.main import exit_code


@pytest.fixture
def loud_cli(capsys, monkeypatch, tmp_path):
    """As `cli`, where tracebacks of the environment are part of the answer."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = exit_code([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def cli(loud_cli):
    """Run a command line in this process, in an empty folder; give back code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        code, out, err = loud_cli(*arguments)
        assert "Traceback" not in out + err
        return code, out, err

    return run


@pytest.fixture
def start(tmp_path):
    """Start a command line as a process of its own, in an empty folder."""
    processes: list[subprocess.Popen[str]] = []

    def run(*arguments: object, **options) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "policyfuzz", *(str(argument) for argument in arguments)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
        processes.append(subprocess.Popen(command, **(pipes | options)))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
        with process:  # closes its pipes
            process.wait()


@pytest.fixture(scope="session")
def campaign(tmp_path_factory) -> Path:
    """A finished campaign with findings, to be read only."""
    folder = tmp_path_factory.mktemp("shared") / "campaign"
    target = "ripple:dimensions=3,probability=0.01"
    assert exit_code(["fuzz", target, "--max-execs", "2000", "-o", str(folder), "--ui", "none"]) == 1
    return folder
