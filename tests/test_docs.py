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


def test_own_target_is_healthy_and_can_be_fuzzed(tmp_path):
    (tmp_path / "pendulum.py").write_text(python_blocks("own-target.md")[0])
    check = run(tmp_path, "-m", "policyfuzz", "check", "pendulum:make_target", "--thorough")
    assert check.returncode == 0, check.stdout
    (tmp_path / "test_pendulum.py").write_text(python_blocks("own-target.md")[1])
    tested = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_pendulum.py")
    assert "13 passed, 1 skipped" in tested.stdout, tested.stdout  # it does not render
    arguments = ["fuzz", "pendulum:make_target", "--max-execs", "3000", "--ui", "none"]
    assert run(tmp_path, "-m", "policyfuzz", *arguments).returncode == 1


@pytest.mark.parametrize(("page", "block"), [("own-target.md", 2), ("strategies.md", 0)])
def test_python_example_runs(tmp_path, page, block):
    result = run(tmp_path, "-c", python_blocks(page)[block])
    assert result.returncode == 0, result.stderr


def test_every_linked_file_exists():
    root = DOCS.parent
    pages = [root / "README.md", root / "ARCHITECTURE.md", *DOCS.glob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())]
    missing = [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()]
    assert not missing
