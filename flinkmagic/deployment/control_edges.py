"""Finds which job vertices must wait for which sinks, because of what the sinks write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flinkmagic.graph.ancestors import with_inputs

if TYPE_CHECKING:
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite
    from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
    from flinkmagic.planning.planner import PlannedJob


def control_edges(planned: PlannedJob, sinks: Sequence[ExecutionJobVertex | None]) -> dict[int, list[int]]:
    """Return, by the index of a job vertex, the sinks that must be finished before it is submitted.

    A sink waits for others because of its target. If its functions may read what these write, all that is computed for
    it alone waits, too. What an earlier sink needs never waits for a later one, so no two wait for each other.

    Parameters
    ----------
    sinks : sequence of ExecutionJobVertex
        The vertices of its sinks; None for a sink that is not part of the run.
    """
    found: dict[int, list[int]] = {}
    of_earlier: set[int] = set()
    for place, sink in enumerate(sinks):
        if sink is None:
            continue
        own = {vertex.index for vertex in with_inputs(sink)}
        waits_for = [(planned.sinks[earlier].write, sinks[earlier]) for earlier in planned.control_edges.get(place, ())]
        earlier = [(write, vertex.index) for write, vertex in waits_for if vertex is not None]
        if earlier:
            found.setdefault(sink.index, []).extend(index for _, index in earlier)
        write = planned.sinks[place].write
        seen = [index for one, index in earlier if _may_read(write, one)]
        for index in (own - of_earlier - {sink.index}) if seen else ():
            found.setdefault(index, []).extend(seen)
        of_earlier |= own
    return found


def _may_read(write: DeferredWrite | None, earlier: DeferredWrite | None) -> bool:
    return write is not None and earlier is not None and bool(write.impure - earlier.impure)
