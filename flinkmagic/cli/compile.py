"""Compiles topologies into graphs, as data or as pictures (`flinkmagic compile`)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flinkmagic.cli.scheduling_trace import scheduling_sections
from flinkmagic.errors.base import UserError
from flinkmagic.errors.graph import TopologyError
from flinkmagic.errors.usage import (
    FormatWithoutViewError,
    NoTopologyFileError,
    SeveralTopologiesError,
    UnreadableFileError,
)
from flinkmagic.graph.compilation import Compilation, compile_topology
from flinkmagic.graph.json_report import Section, report_graphs
from flinkmagic.session.graph_names import VIEWS

if TYPE_CHECKING:
    from flinkmagic.display.snapshot import GraphView

ANSWER_SUFFIX = ".golden.json"
"""The suffix of files that hold Flink's own answers; they are no topologies."""

FORMATS = ("svg", "dot", "text", "json")
_SUFFIXES = {"text": "txt"}


def add_parser(subparsers: Any) -> None:
    """Add the command to the console script's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compile",
        help="make Flink's graphs from a program in JSON",
        description="Compile topologies into StreamGraph, JobGraph and ExecutionGraph. Without --out, one topology's "
        "graphs are printed.",
    )
    parser.add_argument(
        "topologies",
        nargs="+",
        type=Path,
        metavar="TOPOLOGY",
        help=f"a JSON file, or a folder of them (NAME{ANSWER_SUFFIX} in a folder is left out)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write the answers, at the paths that the topologies have in the folder given",
    )
    parser.add_argument("--view", choices=VIEWS, help="one graph instead of all")
    parser.add_argument("--format", choices=FORMATS, help="how to draw the view (text)")


def run(arguments: argparse.Namespace) -> int:
    """Compile; return 0 if every topology was answered, a refusal being an answer to --out without --view."""
    if arguments.format and not arguments.view:
        raise FormatWithoutViewError(VIEWS)
    topologies = list(_find(arguments.topologies))
    if not topologies:
        raise NoTopologyFileError
    if arguments.out is None and len(topologies) > 1:
        raise SeveralTopologiesError(len(topologies))
    suffix = _SUFFIXES.get(arguments.format, arguments.format or "txt") if arguments.view else "json"
    failures = 0
    for path, relative in topologies:
        try:
            rendered = _render(compile_topology(read_topology_file(path)), arguments.view, arguments.format or "text")
        except UserError as error:
            # One names the file itself.
            print(error if isinstance(error, UnreadableFileError) else f"{path}: {error}", file=sys.stderr)
            failures += 1
            continue
        if arguments.out is None:
            print(rendered)
        else:
            target = arguments.out / relative.with_suffix(f".{suffix}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(rendered + "\n", encoding="utf-8")
    return 1 if failures else 0


def _answer(compilation: Compilation) -> Section:
    """Report the graphs, and what the scheduler does with them."""
    report = report_graphs(compilation)
    if compilation.execution_graph is not None and compilation.job_graph is not None:
        report |= scheduling_sections(compilation.job_graph)
    return report


def _find(given: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each topology with the path that its answer has: within its folder, or within the files' common folder."""
    loose = [path.absolute().parent for path in given if not path.is_dir()]
    common = Path(os.path.commonpath(loose)) if loose else Path()
    for path in given:
        if not path.is_dir():
            yield path, path.absolute().relative_to(common)
            continue
        for inner in sorted(path.rglob("*.json")):
            if not inner.name.endswith(ANSWER_SUFFIX):
                yield inner, inner.relative_to(path)


def read_topology_file(path: Path) -> str:
    """Return the text of a file.

    Raises
    ------
    TopologyError
        If it is no UTF-8.
    UnreadableFileError
        If the system does not let us read it.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TopologyError(f"byte {error.start}", "no UTF-8") from None
    except OSError as error:
        raise UnreadableFileError(path, error.strerror) from None


def _render(compilation: Compilation, view: str | None, form: str) -> str:
    """Return one graph as it is to be shown, or all of them as data."""
    if view is None:
        return json.dumps(_answer(compilation), indent=1, ensure_ascii=False)
    from flinkmagic import display
    from flinkmagic.display import execution_views, views

    graphs = {"stream": compilation.stream_graph, "job": compilation.job_graph}
    graph: Any = graphs.get(view, compilation.execution_graph)
    if graph is None:
        assert compilation.refusal is not None
        raise compilation.refusal
    if form == "json":
        report = report_graphs(compilation)
        if view == "regions":
            section = {"regions": report["execution_graph"]["regions"], "slot_sharing": report["slot_sharing"]}
        else:
            section = report[f"{view}_graph"]
        return json.dumps(section, indent=1, ensure_ascii=False)
    show: dict[str, Callable[[Any], GraphView]] = {
        "stream": lambda stream_graph: views.stream_view(stream_graph, compilation.job_graph),
        "job": views.job_view,
        "execution": execution_views.execution_view,
        "regions": execution_views.regions_view,
    }
    draw = {"svg": display.to_svg, "dot": display.to_dot, "text": display.to_text}[form]
    return draw(show[view](graph)).rstrip("\n")
