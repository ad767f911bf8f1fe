"""The tutorials, executed in a real kernel and saved with what they showed.

`python -m tests.saved_notebooks [NAME …]` executes notebooks from top to bottom and saves them with their outputs as
static pictures and text, so that they read well where nothing runs. Each code cell's metadata then hold the hash of the
code that made its outputs: its own and that of the cells above it.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import sysconfig
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from nbclient import NotebookClient

from flinkmagic.cli.tutorials import lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
PACKAGES = sysconfig.get_path("purelib")
_CUT_PATH = re.compile(r"file:/[\w/]*…")
PICTURE = re.compile(r"data:image/svg\+xml;base64,([\w+/=]+)")
_CLOSED = re.compile(r"<details>.*?</details>", re.DOTALL)
_LIBRARY_FRAME = re.compile(r"(\x1b\[[\d;]*m)*File ")
KEY = "shows_the_code"
LONGEST_CELL = 120
"""Seconds."""


def paths() -> list[Path]:
    """All tutorials, in the order in which they are read."""
    return sorted(NOTEBOOKS.glob("*.ipynb"), key=lambda path: (path.stem != "quickstart", path.stem))


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def code_hashes(notebook: NotebookNode) -> list[str]:
    """For each code cell the hash of its code and of that of all code cells above it."""
    above, found = hashlib.sha256(), []
    for cell in code_cells(notebook):
        above.update(cell.source.strip().encode() + b"\0")
        found.append(above.hexdigest()[:16])
    return found


def text_of(cell: NotebookNode) -> str:
    """All that a cell shows as plain text."""
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def executed(path: Path, folder: Path, *, also: str = "") -> NotebookNode:
    """Execute a tutorial in a folder of its own, as `flinkmagic tutorials` lays it out; `also` ends cell 1."""
    lay_out(folder, keep=False)
    notebook = read(path)
    code_cells(notebook)[0].source += also
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=LONGEST_CELL,
        kernel_name="python3",
        store_widget_state=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return notebook


def save(path: Path) -> None:
    """Execute a tutorial and save it with its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = executed(path, Path(folder))
    for number, (cell, code) in enumerate(zip(code_cells(notebook), code_hashes(notebook), strict=True), 1):
        cell.execution_count = number
        tags = {"tags": cell.metadata.tags} if "tags" in cell.metadata else {}
        cell.metadata = nbformat.from_dict({KEY: code, **tags})
        # What the JVM logs on stderr tells of the machine, not of the tutorial.
        shown = [output for output in cell.outputs if output.get("name") != "stderr"]
        cell.outputs = [_static(output, number, folder) for output in shown]
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "pygments_lexer": "ipython3"},
        }
    )
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def _static(output: NotebookNode, number: int, folder: str) -> NotebookNode:
    """Reduce an output to what shows without a kernel: a view to its picture, paths to relative ones."""
    if output.output_type == "stream":
        output.text = _relative(output.text, folder)
    elif output.output_type == "error":
        own = [part for part in output.traceback if not _LIBRARY_FRAME.match(part)]
        output.traceback = [_relative(part, folder) for part in own]
    else:
        shown = {"text/html": _html(output.data, folder), "text/plain": _relative(output.data["text/plain"], folder)}
        output.data = nbformat.from_dict({form: text for form, text in shown.items() if text})
        output.metadata = nbformat.from_dict({})
    if output.output_type == "execute_result":
        output.execution_count = number
    return output


def _html(data: NotebookNode, folder: str) -> str:
    """Return an output's picture as an <img>: JupyterLab draws no bare SVG of a notebook that is not trusted yet."""
    if "text/html" in data:
        html = _CLOSED.sub("", data["text/html"])  # a view has a picture for each tab; the one that is open is shown
    elif "image/svg+xml" in data:
        encoded = base64.b64encode(data["image/svg+xml"].encode()).decode()
        title = data["text/plain"].partition("\n")[0]
        html = f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{encoded}">'
    else:
        return ""
    return PICTURE.sub(lambda found: _encoded(_relative(decoded(found[1]), folder)), _relative(html, folder))


def decoded(picture: str) -> str:
    """Return the SVG that is in an address."""
    return base64.b64decode(picture).decode()


def _encoded(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _relative(text: str, folder: str) -> str:
    text = _CUT_PATH.sub("…", text.replace(f"{PACKAGES}/", "").replace(sys.executable, "python"))
    return text.replace(f"file:{folder}/", "").replace(f"file://{folder}/", "").replace(f"{folder}/", "")


def main(names: Sequence[str]) -> None:
    unknown = set(names) - {path.stem for path in paths()}
    if unknown:
        raise SystemExit(f"no such notebook: {', '.join(sorted(unknown))}")
    for path in paths():
        if not names or path.stem in names:
            print(path.name, flush=True)
            save(path)


if __name__ == "__main__":
    main(sys.argv[1:])
