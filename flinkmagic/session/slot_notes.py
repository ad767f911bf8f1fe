"""Writes a graph's notes about slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.amounts import count
from flinkmagic.planning.stage_handles import stage_handle

if TYPE_CHECKING:
    from flinkmagic.graph.job_graph import JobGraph


def slots_notes(job_graph: JobGraph, slots: int, cores: int) -> list[str]:
    """Return a line if Spark may run more tasks simultaneously than a job has slots: Spark does not know the slots."""
    widths = (vertex.parallelism for vertex in job_graph.vertices_in_topological_order())
    wider = [width for width in widths if width > slots]
    if not wider or slots >= cores:
        return []
    are = "is" if len(wider) == 1 else "are"
    return [
        f"{count(len(wider), 'job vertex', 'job vertices')} {are} wider than {count(slots, 'slot')} "
        f"(up to {max(wider)} tasks): each runs alone, and Spark may run {min(max(wider), cores)} of its tasks "
        "simultaneously"
    ]


def region_notes(job_graph: JobGraph, slots: int, master: str) -> list[str]:
    """Return one line for each pipelined region of several vertices: its slots, and its purpose."""
    lines = []
    for vertex in job_graph.vertices_in_topological_order():
        handle = stage_handle(vertex)
        if handle is None or not handle.upstream:
            continue
        needed = handle.slots
        lines.append(
            f"{vertex.name} and {count(len(handle.upstream), 'vertex', 'vertices')} before it are one pipelined region "
            f"of {needed} tasks that run simultaneously, each in a slot of its own (Spark shares none between stages). "
            "Rows reach it before the last one is made, no shuffle is written to disk, and a failure restarts all of it"
        )
        if needed > slots:
            lines[-1] += (
                f". It needs {needed} slots, and there are {slots}: it waits until there are more. Fewer partitions "
                "need fewer: --parallelism N, and fewer of what it reads"
            )
            if master.startswith("local"):
                lines[-1] += f". A session on {master} never gets more: cancel it, and start one on local[{needed}]"
    return lines
