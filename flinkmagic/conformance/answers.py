"""The answer to a topology: all that Flink would make from it, section by section, or why it is refused."""

from __future__ import annotations

from flinkmagic.conformance.report import (
    Section,
    report_execution_graph,
    report_job_graph,
    report_slot_sharing,
    report_stream_graph,
)
from flinkmagic.conformance.scheduling_trace import scheduling_sections
from flinkmagic.graph.compilation import Compilation
from flinkmagic.graph.slot_sharing import local_input_preferred

ANSWER_SUFFIX = ".golden.json"
"""The end of the name of a file that holds Flink's own answer; it is no topology."""


def report_graphs(compilation: Compilation) -> Section:
    """Report the graphs as far as they could be made, a refusal as ``error`` with its stage."""
    report: Section = {}
    stream_graph, job_graph, execution_graph = (
        compilation.stream_graph,
        compilation.job_graph,
        compilation.execution_graph,
    )
    if stream_graph is not None:
        report["name"] = stream_graph.name
        report["stream_graph"] = report_stream_graph(stream_graph, job_graph)
        if job_graph is not None:
            report["job_graph"] = report_job_graph(job_graph, stream_graph)
    if execution_graph is not None:
        report["execution_graph"] = report_execution_graph(execution_graph)
        report["slot_sharing"] = report_slot_sharing(execution_graph, local_input_preferred(execution_graph))
    if compilation.refusal is not None:
        kind = type(compilation.refusal).__name__
        report["error"] = {"stage": compilation.refusal.stage, "class": kind, "message": str(compilation.refusal)}
    return report


def answer(compilation: Compilation) -> Section:
    """Report the graphs, and what the scheduler does with them."""
    report = report_graphs(compilation)
    if compilation.execution_graph is not None and compilation.job_graph is not None:
        report |= scheduling_sections(compilation.job_graph)
    return report
