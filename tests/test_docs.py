"""The documentation in itself: its links, and what its Python code imports."""

import ast
import re
from pathlib import Path

import pytest

import policyfuzz

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]

#: Python blocks of each guide. test_docs_guides.py runs all of them, and test_pettingzoo_target.py those of
#: multi-agent.md: who adds one has to have it run there.
BLOCKS = {
    "gymnasium.md": 2,
    "inside.md": 1,
    "monitor.md": 1,
    "multi-agent.md": 3,
    "onnx-controller.md": 1,
    "oracles.md": 2,
    "own-simulator.md": 3,
    "python.md": 7,
    "sb3-model.md": 1,
    "strategies.md": 2,
    "triage.md": 1,
}


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


def test_every_python_block_is_known_to_a_test_that_runs_it():
    assert {page.name: len(python_blocks(page)) for page in PAGES if python_blocks(page)} == BLOCKS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_guides_import_nothing_but_the_package_itself(page):
    for block in python_blocks(page):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Import):
                assert not [one.name for one in node.names if one.name.startswith("policyfuzz.")]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("policyfuzz"):
                assert node.module == "policyfuzz"
                assert {one.name for one in node.names} <= set(policyfuzz.__all__)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_behind_pf_is_public(page):
    names = set(re.findall(r"\bpf\.(\w+)", page.read_text()))
    assert names <= set(policyfuzz.__all__)


def test_every_linked_file_exists():
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())]
    missing = [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()]
    assert not missing
