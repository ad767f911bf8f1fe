"""Measures how long it took until the result of a stage was there: what a later job saves that uses it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState


def stage_seconds(graph: ExecutionGraph, taken_up: Mapping[int, float]) -> dict[int, float]:
    """Return by job vertex the seconds from the first deployment among it and its ancestors to its own end.

    Parameters
    ----------
    graph : ExecutionGraph
        Of a job that is over.
    taken_up : mapping of int to float
        The seconds that the results took which the job has used, by their vertices: they count, too.
    """
    began, ended = graph.timestamps(ExecutionState.DEPLOYING), graph.timestamps(ExecutionState.FINISHED)
    first, before, seconds = dict[int, float](), dict[int, float](), dict[int, float]()
    for vertex in graph.job_vertices:  # sources first
        own = slice(vertex.vertices.start, vertex.vertices.stop)
        starts = began[own][~np.isnan(began[own])]
        start = min([first.get(vertex.index, np.inf), *starts.tolist()])
        earlier = max(before.get(vertex.index, 0.0), taken_up.get(vertex.index, 0.0))
        end = np.nanmax(ended[own]) if vertex.index not in taken_up and not np.isnan(ended[own]).all() else start
        seconds[vertex.index] = earlier + (max(0.0, float(end - start)) / 1000 if np.isfinite(start) else 0.0)
        for result in vertex.produced_results:
            for connection in result.consumers:
                consumer = connection.consumer.index
                first[consumer] = min(first.get(consumer, np.inf), start)
                before[consumer] = max(before.get(consumer, 0.0), earlier)
    return seconds
