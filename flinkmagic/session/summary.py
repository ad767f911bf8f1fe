"""Summarises a graph and its runs in lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flinkmagic.amounts import count, moment

if TYPE_CHECKING:
    from flinkmagic.capturing.program import Program
    from flinkmagic.graph.execution_graph import ExecutionGraph
    from flinkmagic.graph.job_graph import JobGraph
    from flinkmagic.graph.stream_graph import StreamGraph
    from flinkmagic.planning.sinks import PlannedSink, SharedStage
    from flinkmagic.reuse.work_done_before import TakenUp


def graph_summary(stream_graph: StreamGraph, job_graph: JobGraph, execution_graph: ExecutionGraph, slots: int) -> str:
    """Return a line like ``9 operators in 5 job vertices, 17 tasks, 17 regions; 4 slots``."""
    return (
        f"{count(len(stream_graph.nodes), 'operator')} in "
        f"{count(len(job_graph.vertices), 'job vertex', 'job vertices')}, "
        f"{count(execution_graph.n_vertices, 'task')}, "
        f"{count(execution_graph.pipelined_regions.count, 'region')}; {count(slots, 'slot')}"
    )


def sharing_notes(shared: Sequence[SharedStage]) -> list[str]:
    """Return one line for each result that several sinks read."""
    return [
        f"{stage.variable or stage.what} is shared by {count(len(stage.sinks), 'sink')} "
        f"({', '.join(stage.sinks)}) and computed once: {stage.why}"
        for stage in shared
    ]


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
    from flinkmagic.planning.stage_handles import stage_handle  # `%load_ext` imports this module, and not the planner

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


def use_notes(program: Program) -> list[str]:
    """Return one line for each DataFrame of another cell that a program, or a part of a merged one, uses."""
    if not program.parts:
        return [f"uses {use}" for use in program.uses]
    present = {part.name: part for part in program.parts}
    lines = []
    for part in program.parts:
        for use in part.uses:
            replaced = present.get(use.program.name, use.program) is not use.program
            outdated = ", as it was before that cell ran again: run this cell again too" if replaced else ""
            lines.append(f"{part.name} uses {use}{outdated}")
    return lines


def not_run_note(program: Program, next_step: str) -> str:
    """Return what is still to run of a graph that has not run; some of its writes may have run already."""
    if not program.writes:
        return f"Nothing has been computed yet. {next_step}"
    ran = len(program.eager.writes) + len(program.eager.statements)
    if not ran:
        return f"Nothing has been written yet. {next_step}"
    done = count(ran, "write has", "writes have")
    return f"{done} run on the way, {count(len(program.writes), 'is', 'are')} still to run. {next_step}"


def nothing_deferred(program: Program, *, shows_graphs: bool) -> str:
    """Return a line like ``nothing to compile: 2 actions have run, nothing is deferred``.

    Parameters
    ----------
    shows_graphs : bool
        Whether the cell shows the graphs of what it has run on the way; a loop's is shown anyway.
    """
    ran = len(program.eager.writes) + len(program.eager.statements)
    loops = sum(call.method == "iterate" for call in program.lineage.calls)
    if ran:
        done = f"{count(ran, 'write has', 'writes have')} run on the way"
    elif loops:
        done = f"{count(loops, 'loop has', 'loops have')} run"
    elif program.eager.actions:
        done = f"{count(program.eager.actions, 'action has', 'actions have')} run"
    else:
        done = "the cell has run"
    return f"{'nothing is left to run' if shows_graphs or loops else 'nothing to compile'}: {done}, nothing is deferred"


def only_shown_note(names: Sequence[str]) -> str:
    """Return why a cell's run does not compute its results."""
    if len(names) == 1:
        return f"{names[0]} only reads, filters and projects: it is shown, and nothing is run for it"
    return f"{', '.join(names)} only read, filter and project: they are shown, and nothing is run for them"


def taken_up_note(taken_up: TakenUp) -> str:
    """Return how much of a job existed already: ``3 job vertices reused, 1 write kept of the failed run``."""
    reused = len(taken_up.finished - taken_up.written)
    other = f" (from {moment(taken_up.other_kernel_at)}, another kernel)" if taken_up.other_kernel_at else ""
    notes = [f"{count(reused, 'job vertex', 'job vertices')} reused{other}"] if reused else []
    if taken_up.added_files:
        notes.append(brought_up_to_date(taken_up.added_files))
    if taken_up.written:
        notes.append(f"{count(len(taken_up.written), 'write')} kept of the failed run")
    return ", ".join(notes)


def brought_up_to_date(files: int) -> str:
    """Return that results were brought up to date from so many files."""
    return f"brought up to date from {count(files, 'added file')}"


def left_out_note(sinks: Sequence[PlannedSink], next_step: str) -> str:
    """Return which sinks a run has left out."""
    return f"The last run left out {', '.join(sink.name for sink in sinks)}. {next_step}"


def sink_line(sink: PlannedSink) -> str:
    """Return what a sink writes where, or that its rows stay: ``by_hour -> parquet, overwrite: file:/…/by_hour``."""
    where = f" ({sink.location})" if sink.location is not None else ""
    if sink.kind == "result":
        return f"{sink.name}: rows that stay in the session{where}"
    return f"{sink.name}: {sink.facts['format']}, {sink.facts['mode']} -> {sink.target}{where}"
