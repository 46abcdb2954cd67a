"""The documentation in itself: its links, its place on the site, and what its Python code imports."""

import ast
import re
from pathlib import Path

import pytest

import policyfuzz

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
BESIDE_CODE = [*sorted((ROOT / "src").rglob("*.md")), ROOT / "training" / "README.md"]
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS, *BESIDE_CODE]

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
    "repair.md": 1,
    "report.md": 1,
    "sb3-model.md": 1,
    "start.md": 1,
    "strategies.md": 2,
    "tensorboard.md": 2,
    "triage.md": 1,
}


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """The text of `page` without code."""
    return re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(), flags=re.S | re.M)


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors that code hosts give to headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_python_block_is_known_to_a_test_that_runs_it():
    assert {page.name: len(python_blocks(page)) for page in PAGES if python_blocks(page)} == BLOCKS


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_guides_import_nothing_but_the_package_itself(page):
    for block in python_blocks(page):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Import):
                assert not [one.name for one in node.names if one.name.startswith("policyfuzz.")]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("policyfuzz"):
                assert node.module == "policyfuzz"
                assert {one.name for one in node.names} <= set(policyfuzz.__all__)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_name_behind_pf_is_public(page):
    names = set(re.findall(r"\bpf\.(\w+)", page.read_text()))
    assert names <= set(policyfuzz.__all__)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings_that_exist(page):
    for link in links(page):
        if ":" in link:
            continue
        path, _, anchor = link.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), link
        assert linked.resolve().is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(linked), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_elsewhere_are_whole_and_encrypted(page):
    for link in links(page):
        if ":" in link:
            assert re.fullmatch(r"https://[a-z0-9.-]+\.[a-z]{2,}(/[\w./#%~-]*)?", link), link


def test_every_page_and_picture_is_used():
    used = {(page.parent / link.partition("#")[0]).resolve() for page in PAGES for link in links(page)}
    pictures = [
        path for path in (ROOT / "docs").rglob("*") if path.suffix in {".png", ".gif", ".svg", ".mp4"}
    ]
    orphans = [
        name_of(path) for path in pictures if path.resolve() not in used and path.parent.name != "assets"
    ]
    assert not orphans


def test_pictures_of_the_gallery_stay_small():
    sizes = [path.stat().st_size for path in (ROOT / "docs" / "gallery").iterdir()]
    assert sum(sizes) < 4_000_000


def test_messages_in_troubleshooting_are_those_of_the_code():
    source = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    rows = re.findall(r"^\| ([^|]*) \|", (ROOT / "docs" / "troubleshooting.md").read_text(), re.M)
    messages = [text for row in rows for text in re.findall(r"`([^`]+)`", row) if " " in text]
    assert len(messages) >= 5
    assert not [message for message in messages if message not in source]


def test_readme_fits_on_a_page():
    assert len((ROOT / "README.md").read_text().splitlines()) < 100
