"""The graph of one superstep."""

from __future__ import annotations

from flinkmagic.reuse.result_keys import NoKey, ResultKey, ResultKeys
from flinkmagic.session.compiled_graph import CompiledGraph


class SuperstepGraph(CompiledGraph):
    """A superstep, compiled: its one result is what the next one begins with."""

    is_callers = True

    def key(self) -> ResultKey | NoKey:
        """Return the key of its rows. Ask before it runs."""
        planned = self._unused_plan
        assert planned is not None
        [result] = [one for one in planned.results if one.kind == "result"]
        return ResultKeys(self.spark.sparkContext, planned.relations).of(result.plan, *result.names)
