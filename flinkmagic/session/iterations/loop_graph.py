"""The graph of one superstep."""

from __future__ import annotations

from flinkmagic.planning.sinks import DEFAULT_STORAGE_LEVEL
from flinkmagic.reuse.result_keys import NoKey, ResultKey, ResultKeys
from flinkmagic.session.compiled_graph import CompiledGraph


class SuperstepGraph(CompiledGraph):
    """A superstep, compiled: its one result is what the next one begins with."""

    is_callers = True

    @property
    def partitions(self) -> int:
        """How many partitions its rows are planned to have."""
        result = self.sinks[0].transformation_id
        vertices = self.job_graph.vertices.values()
        return next(one.parallelism for one in vertices if any(node.id == result for node in one.operators))

    @property
    def slots_planned_for(self) -> int:
        """How many slots there are for its tasks."""
        return self._slots_planned_for

    def _result_level(self) -> str:
        """Keep a second copy where executors may be lost: the superstep before the last one has no lineage."""
        if self.options.storage_level != DEFAULT_STORAGE_LEVEL:
            return self.options.storage_level
        return "" if self.spark.sparkContext._jsc.sc().isLocal() else "MEMORY_AND_DISK_2"

    def key(self) -> ResultKey | NoKey:
        """Return the key of its rows. Ask before it runs."""
        planned = self._unused_plan
        assert planned is not None
        [result] = [one for one in planned.results if one.kind == "result"]
        return ResultKeys(self.spark.sparkContext, planned.relations).of(result.plan, *result.names)
