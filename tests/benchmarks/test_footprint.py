"""Counting code: what counts as a function, and when a moment has come."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import calls, footprint

FAKE = {
    "__init__.py": "",
    "__main__.py": "from policyfuzz.engine import Campaign\nCampaign().run()\n",
    "engine.py": """
from policyfuzz.inner import double, rollout, step

class Campaign:
    def __init__(self):
        self.numbers = [double(n) for n in (1, 2)]

    def run(self):
        self.prepare()
        rollout()

    def prepare(self):
        step()
        return sorted(self.numbers, key=lambda n: -n)
""",
    "inner.py": """
def double(n):
    return 2 * n

def step():
    pass

def rollout():
    step()
""",
}


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """An interpreter whose policyfuzz is a few lines, in an empty folder."""
    (tmp_path / "path" / "policyfuzz").mkdir(parents=True)
    for name, text in FAKE.items():
        (tmp_path / "path" / "policyfuzz" / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_functions_are_counted_once_and_without_lambdas_comprehensions_and_bodies(fake):
    out = fake / "calls.json"
    subprocess.run([sys.executable, "-P", calls.__file__, str(out)], check=True)
    moments = json.loads(out.read_text())["moments"]
    assert moments == {
        "Campaign.run": {"functions": 2, "files": 2},  # __init__, double
        "rollout": {"functions": 5, "files": 2},  # run, prepare, and the step that is no episode's
        "step": {"functions": 6, "files": 2},
    }


def test_moments_that_never_come_have_no_number(fake, monkeypatch):
    monkeypatch.setattr(footprint, "_ROUNDS", 1)
    found = dict(footprint.measure(Path(sys.executable), fake))
    assert found["files in src"] == len(FAKE)
    assert found["lines in src"] == sum(len(text.splitlines()) for text in FAKE.values())
    assert found["acasxu: functions before the first rollout"] == 5
    assert found["LunarLander -j 2: functions before a case goes to a worker"] is None
    assert found["show: modules of policyfuzz"] == 3, "the package, engine and inner"
    assert found["show: imports scipy"] is False
    assert found.keys() == footprint.BEFORE.keys()


def test_interpreter_that_is_none_gets_a_message(bench):
    code, _, err = bench("footprint", "--python", "nowhere")
    assert code == 2
    assert "cannot run" in err
    assert "No such file" in err


def test_numbers_stand_beside_those_of_before(bench, monkeypatch):
    found = {"files in src": 173, "show: imports scipy": False, "lines in src": None}
    monkeypatch.setattr(footprint, "measure", lambda _python, _folder: found.items())
    code, out, _ = bench("footprint")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["files", "in", "src", "346", "173", "-50%"] in rows
    assert ["show:", "imports", "scipy", "yes", "no"] in rows
    assert ["lines", "in", "src", "31,696", "-"] in rows
