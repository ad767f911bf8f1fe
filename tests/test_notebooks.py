"""The tutorials, executed in a real kernel. (The quickstart is executed by the browser tests and by the demo.)"""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")


def test_the_scheduling_tutorial_shows_what_it_says(tmp_path: Path) -> None:
    shutil.copy(NOTEBOOKS / "scheduling.ipynb", tmp_path)
    notebook = nbformat.read(tmp_path / "scheduling.ipynb", as_version=4)
    NotebookClient(notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    told = {cell.source.splitlines()[0]: _text(cell) for cell in notebook.cells if cell.cell_type == "code"}
    assert "5 operators in 3 job vertices, 11 tasks" in told["%%flinkgraph pipeline --parallelism 3"]
    documented = told["%flinksim pipeline --task-managers 2 --slots 3"]
    assert "6 slots used" in documented
    assert len({line.split()[0] for line in documented.splitlines() if line.startswith("tm-")}) == 4
    failed = told["%flinksim pipeline --task-managers 2 --slots 3 --fail Map:2@500ms"]
    assert "Map -> HashAggregate (3/4)#1" in failed
    assert "Source: Source (3/4)#1" in failed
    assert failed.count("#1") == 2
    lost = told["%flinksim pipeline --task-managers 2 --slots 3 --task-seconds 2 --lose-task-manager tm-1@3s"]
    assert "FINISHED" in lost
    assert "#1" in lost
    assert "FINISHED" in told["%flinkrun pipeline"]
    rows = told['pipeline.jobs[-1].result("reduced").orderBy("key").show()']
    assert f"|  3|{sum(range(3, 1_000_000, 7))}|" in rows
    assert "offers" in told["%flinkjobs pipeline --log"]
    assert "as it was" in told["%flinksim pipeline --task-managers 4 --slots 2"]


def _text(cell: nbformat.NotebookNode) -> str:
    """All that a cell shows as plain text."""
    shown = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "\n".join(shown)
