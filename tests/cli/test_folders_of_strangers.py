"""Commands that are run in a folder of a stranger: no file there is imported unless the user names it."""

import subprocess
import sys
from pathlib import Path

import pytest

#: What `python -m` imports before it comes to the package: only Python's own option -P keeps these out.
IMPORTED_BY_PYTHON = "importlib warnings contextlib collections keyword operator reprlib functools types"
PACKAGES = "numpy click rich scipy numba llvmlite gymnasium matplotlib PIL yaml cloudpickle torch mpe2"
PLANTED = """
from pathlib import Path
Path({mark!r}).open("a").write(__name__ + "\\n")
raise ImportError("planted")
"""
ENTRY_POINTS = """
[policyfuzz.targets]
planted = planted_package:make
[policyfuzz.policies]
planted = planted_package:load
[gymnasium.envs]
planted = planted_package:register
"""


@pytest.fixture(scope="module")
def mark(tmp_path_factory) -> Path:
    """The file that planted modules write their names to, or the folder that a planted setting makes."""
    return tmp_path_factory.mktemp("mark") / "MARK"


@pytest.fixture(scope="module")
def run(tmp_path_factory, mark, campaign):
    """Run `policyfuzz`, or `python -m policyfuzz`, where every module of Python and many more are planted."""
    folder, scripts = tmp_path_factory.mktemp("theirs"), tmp_path_factory.mktemp("scripts")
    names = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    names -= set(IMPORTED_BY_PYTHON.split())
    for name in [*names, *PACKAGES.split(), "planted_package"]:
        (folder / f"{name}.py").write_text(PLANTED.format(mark=str(mark)))
    (folder / "planted-1.0.dist-info").mkdir()
    (folder / "planted-1.0.dist-info" / "METADATA").write_text("Name: planted\nVersion: 1.0\n")
    (folder / "planted-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / ".numba_config.yaml").write_text(f"cache_dir: {mark}")  # a folder of pickles
    (folder / "matplotlibrc").write_text("text.usetex: True\nbackend: module://planted_package\n")
    (scripts / "policyfuzz").write_text("from policyfuzz.cli.main import run\nrun()\n")

    def process(*arguments: object, script: bool = True) -> tuple[int, str]:
        command = [str(scripts / "policyfuzz")] if script else ["-m", "policyfuzz"]
        words = [str(campaign) if word == "CAMPAIGN" else str(word) for word in arguments]
        ran = subprocess.run(
            [sys.executable, *command, *words], cwd=folder, capture_output=True, text=True, check=False
        )
        return ran.returncode, ran.stderr

    return process


def found(mark: Path) -> str:
    """What was run, for a reader."""
    return mark.read_text() if mark.is_file() else "the cache of compiled code"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], 0),
        (["targets"], 0),
        (["status", "CAMPAIGN"], 0),
        (["show", "CAMPAIGN", "--all"], 0),
        (["export", "CAMPAIGN", "-o", "table.csv"], 0),
        (["replay", "CAMPAIGN", 1, "--png", "one.png"], 1),
        (["init", "-o", "mine.py"], 0),
        (["check", "acasxu", "--episodes", 64], 0),
        (["fuzz", "acasxu", "--max-execs", 64, "--ui", "none", "-j", 2], 0),
        (["check", "planted", "--episodes", 64], 2),
        (["check", "pettingzoo:mpe2.no_such_v3", "--policy", "planted:x"], 2),
    ],
)
def test_no_verb_imports_from_the_current_folder(run, mark, arguments, expected):
    code, err = run(*arguments)
    assert not mark.exists(), found(mark)
    assert code in (expected, 1 if arguments[0] == "fuzz" else expected), err


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["show", "CAMPAIGN"], ["fuzz", "acasxu", "--max-execs", 64, "--ui", "none"]]
)
def test_python_m_does_not_either(run, mark, arguments):
    code, err = run(*arguments, script=False)
    assert not mark.exists(), found(mark)
    assert code in (0, 1), err


MODULE = """
import json
import helper
from policyfuzz import load_target

assert hasattr(json, "dumps"), "a file beside this one replaced a module of Python"

def make():
    return load_target(helper.NAME)
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-j", 2]])
@pytest.mark.parametrize("name", ["my_target:make", "my_target.py:make", "../folder/my_target.py:make"])
def test_own_modules_of_the_current_folder_are_found_and_replace_nothing(tmp_path, start, name, workers):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "my_target.py").write_text(MODULE)
    (folder / "helper.py").write_text('NAME = "ripple:dimensions=2,probability=0.1"')
    for planted in ("json", "click", "zipfile"):
        (folder / f"{planted}.py").write_text(PLANTED.format(mark=str(tmp_path / "MARK")))
    process = start("fuzz", name, "--max-execs", 200, "--ui", "none", *workers, cwd=folder)
    _, err = process.communicate()
    assert process.returncode == 1, err
    assert not (tmp_path / "MARK").exists()
