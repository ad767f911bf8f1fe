"""Compiles the graph of one superstep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.capturing.program import Program
from flinkmagic.options import DEFAULT_STORAGE_LEVEL, JobOptions
from flinkmagic.planning.origin import Origin
from flinkmagic.reuse.result_keys import NoKey, ResultKey, ResultKeys
from flinkmagic.session.compiled_graph import CompiledGraph

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame


class SuperstepGraph(CompiledGraph):
    """A compiled superstep; its only result is the input of the next one."""

    def __init__(self, program: Program | dict[str, DataFrame], name: str, options: JobOptions) -> None:
        frames = program.results if isinstance(program, Program) else program
        sc = next(iter(frames.values())).sparkSession.sparkContext
        super().__init__(program, name, options, Origin(is_line=True, result_level=_result_level(sc, options)))

    @property
    def partitions(self) -> int:
        """How many partitions its rows are planned to have."""
        result = self.sinks[0].transformation_id
        vertices = self.job_graph.vertices.values()
        return next(one.parallelism for one in vertices if any(node.id == result for node in one.operators))

    @property
    def slots_planned_for(self) -> int:
        """How many slots its tasks can use."""
        return self._slots_planned_for

    def key(self) -> ResultKey | NoKey:
        """Return the key of its rows. Ask before it runs."""
        planned = self._unused_plan
        assert planned is not None
        [result] = [one for one in planned.results if one.kind == "result"]
        return ResultKeys(self.spark.sparkContext, planned.relations).of(result.plan, *result.names)


def _result_level(sc: SparkContext, options: JobOptions) -> str:
    """Choose a level with a second copy if executors may be lost: the superstep before the last has no lineage."""
    if options.storage_level != DEFAULT_STORAGE_LEVEL:
        return options.storage_level
    return "" if sc._jsc.sc().isLocal() else "MEMORY_AND_DISK_2"
