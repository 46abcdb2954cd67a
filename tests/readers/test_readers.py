"""Whatever a stranger wrote: no traceback, no internal error, no hang, no file elsewhere, no code.

`python -m benchmarks readers --max-time 1h` runs the same cases for as long as you like.
"""

import time
from collections import Counter

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.readers.cases import READERS
from benchmarks.readers.command import run_all, run_case
from benchmarks.readers.sandbox import MARKER, run

#: Cases in this process, where one that hangs would hang the tests.
UNIT_CASES = {"oracle": 25, "input": 25, "name": 15, "environment": 6, "command": 12, "model": 8}
#: Cases of each reader in a process that can be ended.
SLOW_CASES = 25


@pytest.mark.parametrize("name", UNIT_CASES)
def test_reader_keeps_its_promises(name, corpus, tmp_path, record_property):
    codes: Counter[int] = Counter()

    @settings(
        max_examples=UNIT_CASES[name],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(rng=st.randoms(use_true_random=False))
    def keeps_them(rng):
        answer = run_case(name, rng, corpus, tmp_path / "case")
        codes.update(answer["codes"])
        assert not answer["problems"], answer

    keeps_them()
    record_property("exit codes", dict(codes))
    click.echo(f"{name}: {sum(codes.values())} commands, exit codes {dict(sorted(codes.items()))}")


@pytest.mark.slow
def test_all_readers_keep_their_promises_in_processes(tmp_path):
    tallies = run_all(
        tuple(READERS), 0, SLOW_CASES, time.monotonic() + 3600, tmp_path / "run", tmp_path / "keep"
    )
    for name, tally in tallies.items():
        click.echo(f"{name}: {dict(tally.codes)}")
    assert {name: tally.failures for name, tally in tallies.items() if tally.failures} == {}


# the watch sees what it is there for


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("open('../outside', 'w').close()", "writes"),
        ("import os; os.mkdir('../outside')", "os.mkdir"),
        ("import subprocess; subprocess.run(['true'])", "starts"),
        ("import os; os.system('true')", "os.system"),
        (f"open({MARKER!r}, 'w').close()", "planted code was run"),
        ("raise SystemExit(1)", "runs"),
    ],
)
def test_watch_sees_what_code_does(code, problem, tmp_path):
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "own.py").write_text(f"{code}\ndef act(observation):\n    return 0\n")
    outcome = run(["check", "gym:CartPole-v1", "--policy", "py:own.py:act", "--episodes", "5"], folder)
    assert any(found.startswith(problem) for found in outcome.problems), outcome


def test_exit_code_1_needs_a_confirmed_finding(monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks.readers.sandbox.exit_code", lambda _arguments: 1)
    assert run(["fuzz"], tmp_path).problems == ("exit code 1 without a confirmed finding",)


def test_a_case_that_hangs_or_dies_costs_its_process_only(monkeypatch, tmp_path):
    from benchmarks.readers import command

    monkeypatch.setattr(command, "_CASE_SECONDS", 0.0)
    monkeypatch.setattr(command, "_START_SECONDS", 0.0)
    tallies = run_all(("oracle",), 0, 2, time.monotonic() + 3600, tmp_path / "run", tmp_path / "keep")
    assert tallies["oracle"].codes == {"hang": 2}
    assert (tmp_path / "keep" / "oracle-0" / "case.json").exists()
