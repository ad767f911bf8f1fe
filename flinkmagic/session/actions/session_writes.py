"""Runs a session's writes, which read what earlier lines have kept, and keep what later ones may read.

The rules are those of actions (`kept_frames`), and three more:

1. A write whose job fails while it keeps rows, before anything of it is written, runs again without keeping any.
2. A write of a selection of split rows neither reads nor keeps any: each row belongs to one selection only as long as
   one job computes them all.
3. A write that asks how shuffled rows lie in partitions is Spark's own, as such an action is: the parts of a random
   split would else overlap.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.merging import spanning
from flinkmagic.errors.actions import PartitionsAskedError, not_kept
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.jvm.java import execution_of
from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.planning.run_origin import LINE, LineQuery, RunOrigin
from flinkmagic.reuse.durable_rows import durable_rows
from flinkmagic.session.actions.action_graph import LineGraph
from flinkmagic.session.actions.kept_frames import KeptFrames
from flinkmagic.session.actions.text_reads import TextReads
from flinkmagic.session.job import store_for
from flinkmagic.session.line_as_job import Line, carry_out

if TYPE_CHECKING:
    from flinkmagic.capturing.program import Program
    from flinkmagic.options import JobOptions
    from flinkmagic.session.job import Job


class SessionWrite:
    """One write of a session: the only sink of its program, which is the cell's."""

    def __init__(self, program: Program, name: str, options: JobOptions) -> None:
        self._program, self._name, self._options = program, name, options
        self._remarks: list[str] = []
        self._started = time.monotonic()
        self._sc = program.spark.sparkContext
        self._frames = KeptFrames.of(self._sc)
        self._texts = TextReads(self._sc, None, self._frames.budget)
        self._durable = durable_rows(self._sc, store_for(options))
        self.graph: LineGraph
        """Another one if the write has run again."""

    def _first(self) -> Job:
        """Compile the write, and run it."""
        program, keeps = self._program, self._options.retain == "session"
        stages: Any = CLASSES.shared_instance(self._sc._gateway, "SingleStages")
        if stages.asksForMergedPartitions(execution_of(program.writes[-1].df)):
            raise PartitionsAskedError
        if keeps and len(program.writes) == 1 and not spanning(program).lineage.selections:
            self._frames.leave_to_spark(program.spark)
            self._frames.recall(program, program.writes[-1].df, self._durable)
            self.graph = LineGraph(program, self._name, self._options, self._origin())
        else:
            self.graph = LineGraph(program, self._name, self._options)
        while self._frames.revise(self.graph, self._durable):
            self.graph = LineGraph(program, self._name, self._options, self._origin(), self.graph.unused)
        return self.graph.run(wait=False)

    def _origin(self) -> RunOrigin:
        sources = self._texts.of(self._program.writes[-1].df)
        return replace(LINE, query=LineQuery(self._frames.within_reach(self._sc), sources))

    def _note(self, job: Job) -> None:
        """Note what the job has read and kept."""
        seconds = time.monotonic() - self._started
        self._frames.budget.note(seconds, job.saved_seconds)
        self._texts.ended(seconds)
        if self._options.retain == "session":
            self._frames.note(self.graph, job, self._program.writes[-1].df, seconds, None, self._durable)

    def remarks(self) -> list[str]:
        """Return what the user should know of its last job."""
        job = self.graph.jobs[-1]
        texts = [self._texts.note] if self._texts.note else []
        return [*self._remarks, *texts, *self.graph.remarks(job)]

    def run(self, watch: Callable[[Job], object]) -> Job:
        """Run the write, and return its job when it has finished; `watch` is called with each job that runs.

        Raises
        ------
        NotDeployedError, ActionCancelledError, ActionFailedError, PySparkException
            As `carry_out`.
        """
        write = self._program.writes[-1]
        line = Line(write.text, str(write.location), write.called)
        job = carry_out(line, self._first, watch, self._without_keeping)
        self._note(job)
        return job

    def _without_keeping(self, job: Job, error: BaseException) -> Job | None:
        """Run the write again without keeping rows, if rule 1 says so."""
        kept = [*(boundary.name for boundary in self.graph.boundaries), *self._texts.names]
        if not kept or self._has_begun():
            return None
        self._frames.give_up(self.graph)
        self._texts.give_up()
        self._remarks.append(not_kept(kept, error))
        graph = LineGraph(self._program, self._name, self._options)
        again = graph.run(wait=False)
        self.graph = graph
        return again

    def _has_begun(self) -> bool:
        graph = self.graph.execution_graph
        (vertex,) = (one for one in graph.job_vertices if one.id == self.graph.last_vertex.id)
        deployed = graph.timestamps(ExecutionState.DEPLOYING)
        return any(deployed[one] == deployed[one] or graph.attempt[one] > 0 for one in vertex.vertices)  # NaN: never
