"""What the documentation shows works as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"

pytestmark = pytest.mark.slow


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_own_simulator_is_what_init_writes(tmp_path):
    assert run(tmp_path, "-m", "policyfuzz", "init").returncode == 0
    assert (tmp_path / "my_target.py").read_text() == python_blocks("own-simulator.md")[0]
    (tmp_path / "test_my_target.py").write_text(python_blocks("own-simulator.md")[1])
    tested = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_target.py")
    assert "13 passed, 1 skipped" in tested.stdout, tested.stdout  # it does not render


def test_simulator_of_many_episodes_is_healthy_and_can_be_fuzzed(tmp_path):
    (tmp_path / "pendulum.py").write_text(python_blocks("own-simulator.md")[2])
    check = run(tmp_path, "-m", "policyfuzz", "check", "pendulum:make_target", "--thorough")
    assert check.returncode == 0, check.stdout
    arguments = ["fuzz", "pendulum:make_target", "--max-execs", "3000", "--ui", "none"]
    assert run(tmp_path, "-m", "policyfuzz", *arguments).returncode == 1


def test_notebook_runs_from_top_to_bottom(tmp_path):
    pytest.importorskip("stable_baselines3", reason="the page trains a model")
    pytest.importorskip("pandas", reason="the page shows data frames")
    text = "\n".join(python_blocks("python.md"))
    assert text.count('max_time="30s"') == 1
    # as many episodes on any machine
    result = run(tmp_path, "-c", text.replace('max_time="30s"', "max_execs=400"))
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "fall.gif").is_file()


def test_python_example_runs(tmp_path):
    result = run(tmp_path, "-c", python_blocks("strategies.md")[0])
    assert result.returncode == 0, result.stderr


def test_every_linked_file_exists():
    root = DOCS.parent
    pages = [root / "README.md", root / "ARCHITECTURE.md", *DOCS.glob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())]
    missing = [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()]
    assert not missing
