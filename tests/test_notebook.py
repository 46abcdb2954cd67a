"""The example notebook: it runs from top to bottom, and what is committed is what it shows."""

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs the development packages")
NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
#: Bytes: everybody who clones the repository gets its films.
MOST_BYTES = 1_000_000


def outputs(notebook: Any) -> list[Any]:
    return [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]


def pages(notebook: Any) -> str:
    return "".join(one.get("data", {}).get("text/html", "") for one in outputs(notebook))


def check(notebook: Any) -> None:
    assert not [one for one in outputs(notebook) if one.output_type == "error"]
    shown = pages(notebook)
    assert "failure probability" in shown
    assert "point of no return" in shown
    assert "data:video/mp4;base64," in shown or "data:image/gif;base64," in shown


def test_committed_notebook_is_small_and_was_executed_in_order():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    numbers = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert numbers == list(range(1, len(numbers) + 1))
    assert NOTEBOOK.stat().st_size < MOST_BYTES
    check(notebook)


@pytest.mark.slow
def test_notebook_runs_from_top_to_bottom(tmp_path):
    pytest.importorskip("ipykernel", reason="needs the development packages")
    client = pytest.importorskip("nbclient", reason="needs the development packages")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    settings = {"timeout": None, "resources": {"metadata": {"path": str(tmp_path)}}}
    client.NotebookClient(notebook, **settings).execute()
    check(notebook)
