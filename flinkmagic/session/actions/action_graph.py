"""Compiles the graphs of single lines: of a write, and of an action's query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from flinkmagic.deployment.stages.stage_runner import measured
from flinkmagic.errors.actions import in_full, not_used, paid_for
from flinkmagic.graph.ancestors import with_ancestors
from flinkmagic.graph.job_graph import JobGraph, JobVertex
from flinkmagic.options import BATCH, BLOCKING
from flinkmagic.planning.clones import KeptClones
from flinkmagic.planning.planner import PlannedJob
from flinkmagic.planning.run_origin import LINE, NO_QUERY, LineQuery, RunOrigin
from flinkmagic.planning.sinks import PlannedBoundary
from flinkmagic.planning.stage_handles import StageHandle, stage_handle
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.reuse.result_keys import NoKey, ResultKey, ResultKeys
from flinkmagic.session.compiled_graph import CompiledGraph
from flinkmagic.session.findings.job_facts import NO_METRICS, LastStage
from flinkmagic.session.findings.texts import finding_lines
from flinkmagic.session.summary import brought_up_to_date

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.deployment.watching.call_events import CallEvents
    from flinkmagic.display.findings import Finding
    from flinkmagic.options import JobOptions
    from flinkmagic.reuse.retained_results import RetainedResult
    from flinkmagic.session.job import Job


LONG_MS = 3000.0
"""A job that takes as long is looked at for what lost its time."""


class LineGraph(CompiledGraph):
    """The graph of one action or write; it may keep rows for later lines."""

    boundaries: tuple[PlannedBoundary, ...]
    """The DataFrames whose rows are kept for later lines."""
    asked: Mapping[DataFrame, frozenset[int]]
    """The DataFrames of which only these columns could be kept, and are not (`planning.boundaries`, rule 5)."""

    def __init__(
        self,
        program: Program,
        name: str,
        options: JobOptions,
        origin: RunOrigin = LINE,
        unused: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.unused: dict[str, str] = dict(unused)
        """By the name of a DataFrame, why the rows that were kept of it are not used."""
        self.first_kept: set[str] = set()
        """The names of the DataFrames that an earlier line has computed in full, and this one is the first to keep."""
        # A write's clones are its own, as only they know of the user's query listeners. A line starts no query of a
        # stream, whatever mode is set for cells.
        super().__init__(program, name, replace(options, mode=BATCH), origin)

    def remarks(self, job: Job) -> list[str]:
        """Return what to tell the user: what its job has kept, what it has not used of the rows kept before, and what
        lost most of its time."""
        vertices, reused = self.job_graph.vertices_by_operator(), job.reused()
        made = [one.name for one in self.boundaries if vertices[one.tail_id].id not in reused]
        kept = [name for name in made if name not in job.not_retained()]
        told = [brought_up_to_date(job.added_files)] if job.added_files else []
        told += [in_full(why) for why in list(job.not_refreshed().values())[:1]]
        told += [not_used(name, why) for name, why in job.not_used().items()]
        told += [paid_for(", ".join(dict.fromkeys(kept)))] if kept else []
        return [*told, *first_finding(job.findings, job.elapsed_ms)]

    def found_durable(self) -> list[RetainedResult]:
        """Return what its jobs have found in a durable store."""
        return [one for job in self.jobs for one in job.found_durable()]

    def kept_keys(self) -> tuple[ResultKeys, list[tuple[PlannedBoundary, ResultKey | NoKey]]]:
        """Return what makes keys of its plan, and the DataFrames whose rows would be kept with the keys of the rows.

        Ask before a run.
        """
        planned = self._unused_plan
        assert planned is not None
        keys = ResultKeys(self.spark.sparkContext, planned.relations)
        results: dict[object, StageResult] = {one.handle: one for one in planned.results}
        kept = [(one, results[self.stream_graph.nodes[one.tail_id].operator_factory]) for one in self.boundaries]
        return keys, [(boundary, keys.of_result(result)) for boundary, result in kept]

    def _compile(self, on_progress: Callable[[int, int], None] | None = None) -> PlannedJob:
        planned = super()._compile(on_progress)
        self.boundaries, self.asked = planned.boundaries, planned.asked
        return planned

    def rows_of(self, df: DataFrame) -> int | None:
        """Return how many rows of a DataFrame the query had when it ran; None if they were not counted."""
        return None

    @property
    def last_vertex(self) -> JobVertex:
        """The last stage's vertex."""
        return self._vertex_of(self.sinks[-1])


def first_finding(findings: Callable[[], Sequence[Finding]], elapsed_ms: float) -> list[str]:
    """Return the first finding; none of what is over soon: there may be thousands."""
    return finding_lines(findings() if elapsed_ms >= LONG_MS else (), 1)


class ActionGraph(LineGraph):
    """A query whose last stage the action runs itself, to take its rows: a run leaves that vertex out."""

    def __init__(
        self,
        program: Program,
        name: str,
        options: JobOptions,
        line: LineQuery = NO_QUERY,
        unused: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        [self.query] = program.results.values()
        """The DataFrame whose stages are run."""
        # Earlier actions' clones will do: the action's own query runs on the user's session.
        clones = KeptClones.of(program.spark.sparkContext, (options.parallelism, options.slots))
        # The last stage is the action's own: no region holds it together with others.
        options = replace(options, exchange=BLOCKING)
        self._rows_of: Callable[[JavaObject, DataFrame], int | None] | None = None
        origin = RunOrigin(is_line=True, collects=True, query=line, clones=clones)
        super().__init__(program, name, options, origin, unused)

    def release(self) -> None:
        """Release what the last stage holds in the JVM: the action has its rows."""
        self.last_stage.let_go()
        self._rows_of = None  # it holds the plans of all stages

    def add_last_stage(self, job: Job, events: CallEvents, location: SourceLocation) -> None:
        """Add to a job what Spark reports of the stage that the action has run itself, on the line that is given."""
        vertex, stage = self.last_vertex, self.last_stage
        metrics = next(iter(measured(stage)), NO_METRICS)
        action = {"cell": location.cell, "line": location.line, "code": location.code}
        job.add_last_stage(LastStage.of(self.job_graph, vertex, stage, events, metrics, action))

    def _compile(self, on_progress: Callable[[int, int], None] | None = None) -> PlannedJob:
        planned = super()._compile(on_progress)
        self._rows_of = planned.rows_of
        return planned

    def rows_of(self, df: DataFrame) -> int | None:
        """Return how many rows of a DataFrame the query had when it ran; None if they were not counted."""
        return self._rows_of(self.last_stage.make(), df) if self._rows_of is not None else None

    @property
    def is_single_stage(self) -> bool:
        """Whether Spark runs the query as one stage."""
        return len(self.job_graph.vertices) == 1

    @property
    def last_stage(self) -> StageHandle:
        """The stage that the action runs itself."""
        handle = stage_handle(self.last_vertex)
        assert handle is not None
        return handle

    def _part(self, run: frozenset[int]) -> JobGraph:
        return with_ancestors(self.job_graph, [edge.producer.id for edge in self.last_vertex.inputs])
