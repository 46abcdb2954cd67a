import pytest

from benchmarks.__main__ import exit_code


@pytest.fixture
def bench(capsys, monkeypatch, tmp_path):
    """Run `python -m benchmarks` in this process, in an empty folder; give back code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        words = [str(argument) for argument in arguments]
        monkeypatch.setattr("sys.argv", ["benchmarks", *words])
        code = exit_code(words)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return code, captured.out, captured.err

    return run
