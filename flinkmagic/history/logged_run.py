"""A job of an event log, with its graph and facts.

It is an action or a write of a DataFrame, a Spark job of an RDD, or a run of flinkmagic's.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from flinkmagic.deployment import TaskRecord
from flinkmagic.display import ErrorView, GraphView, JobSnapshot, job_view, stream_view
from flinkmagic.display.findings import Finding
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import ChainingStrategy, RuntimeExecutionMode, StreamExchangeMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph, JobVertex
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.graph.transformations import (
    PartitionTransformation,
    SinkTransformation,
    Transformation,
    operator_on,
)
from flinkmagic.history.event_log import WRONG, Application, LoggedExecution, LoggedJob, LoggedStage
from flinkmagic.history.logged_plan import WORDS, LoggedPlan, read_plan
from flinkmagic.history.vertices import LoggedVertex, vertices_of
from flinkmagic.planning.operator_labels import spark_text
from flinkmagic.planning.plan_reader import CACHED_SCAN, PlanNode
from flinkmagic.planning.sql_words import does, source_name, tables
from flinkmagic.planning.stage_metrics import NOTHING, Metrics, StageMetrics
from flinkmagic.session.findings.critical_path import CriticalPath, critical_path
from flinkmagic.session.findings.facts import JobFacts, VertexFacts
from flinkmagic.session.findings.find import find
from flinkmagic.session.findings.forecast import MOST_TASKS
from flinkmagic.session.findings.job_facts import vertex_facts
from flinkmagic.session.run_facts import costs, task_views

_WRITTEN = re.compile(r"Command \S*?([^/\s]+)/?, (?:true|false), (\w+)")
"""In the text of Spark's command that writes files: the last part of the path, and the format."""

_CALL = re.compile(r"(\w+) at (.+\.py):(\d+)$")
"""The name of a stage, if its call came from Python: other names may be of files of Spark's own."""

_NO_ROOT = -1
"""In place of the number of an execution that the log does not have."""
_MOST_OPERATORS = 5000
"""A plan with more is shown by its stages alone."""


@dataclass(eq=False)
class LoggedRun:
    """A job that an application has run. Made by `logged_runs`."""

    app: Application
    name: str
    description: str
    executions: list[LoggedExecution]
    """Its SQL execution, and those that this needs; none of a Spark job of RDDs. Of a run those of its stages."""
    jobs: list[LoggedJob]
    """Its Spark jobs, oldest first."""
    is_run: bool = False
    """Whether flinkmagic ran it, each stage as a Spark job of its own."""

    @property
    def started_ms(self) -> float:
        """When it began, milliseconds since the epoch."""
        begun = [job.started_ms for job in self.jobs]
        return min(begun + [execution.started_ms for execution in self.executions])

    @property
    def ended_ms(self) -> float:
        """When it ended; if the log does not say so, when the log does."""
        return max(self.app.last_ms if ended is None else ended for ended in self._ends)

    @property
    def _ends(self) -> list[float | None]:
        of_jobs = [job.ended_ms for job in self.jobs]
        if self.is_run:
            return of_jobs + [one.ended_ms for one in self.executions]
        return [self.executions[0].ended_ms] if self.executions else of_jobs

    @property
    def elapsed_ms(self) -> float:
        """How long it took."""
        return self.ended_ms - self.started_ms

    @property
    def status(self) -> str:
        """FINISHED, FAILED, or RUNNING if the log ends before it does."""
        if self._errors:
            return "FAILED"
        return "RUNNING" if None in self._ends else "FINISHED"

    @property
    def notes(self) -> list[str]:
        """What could not be read of it."""
        if not self.executions or self._plan is not None:
            return []
        return ["its plan could not be read, or is too large: its stages have the names of their RDDs"]

    @property
    def n_tasks(self) -> int:
        """How many attempts of tasks it has."""
        return sum(len(stage.tasks) for stage in self._stages)

    @cached_property
    def _errors(self) -> list[str]:
        if self.is_run:
            # A stage that failed may have been submitted again.
            last = {job.place and job.place.vertex: job for job in self.jobs}
            told = [job.error for job in last.values()]
        else:
            told = [job.error for job in self.jobs] + [one.error for one in self.executions[:1]]
        return list(dict.fromkeys(error for error in told if error))

    @cached_property
    def _stages(self) -> list[LoggedStage]:
        """Its stages, also those that it skipped, by their ids."""
        numbers = sorted({number for job in self.jobs for number in job.stages})
        return [self.app.stages[number] for number in numbers if number in self.app.stages]

    @cached_property
    def _values(self) -> dict[int, int]:
        """What its operators have measured, by accumulators."""
        values: dict[int, int] = {}
        for stage in self._stages:
            values |= stage.metrics
        for execution in self.executions:
            values |= execution.driver_metrics
        return values

    @cached_property
    def _plan(self) -> LoggedPlan | None:
        """Its plan; of those of all its executions the one of which its stages have measured the most. Of a run all."""
        measured = [stage.metrics.keys() for stage in self._stages]
        if self.is_run:
            return _plan_of(self.executions, measured)
        ran = frozenset().union(*measured)
        plans = [plan for execution in self.executions if (plan := _plan_of([execution], measured)) is not None]
        return max(plans, key=lambda plan: sum(len(ran & part.measured) for part in plan.parts), default=None)

    @cached_property
    def _vertices(self) -> tuple[list[LoggedVertex], list[LoggedVertex]]:
        return vertices_of(self._stages, self._plan)

    @cached_property
    def _graphs(self) -> tuple[StreamGraph, JobGraph, list[tuple[JobVertex, LoggedVertex]]]:
        """Its graphs, and the vertices of the job graph with those of the log, producers before consumers."""
        vertices = self._vertices[0]
        tails = _transformations(vertices)
        environment = StreamExecutionEnvironment(
            self.name, RuntimeExecutionMode.BATCH, upper_bound_max_parallelism=1 << 31
        )
        for tail in tails:
            environment.add_operator(tail)
        stream_graph = environment.get_stream_graph()
        job_graph = create_job_graph(stream_graph)
        of_node = job_graph.vertices_by_operator()
        paired = [(of_node[tail.id or 0], vertex) for tail, vertex in zip(tails, vertices, strict=True)]
        return stream_graph, job_graph, paired

    @cached_property
    def job_graph(self) -> JobGraph:
        """Its stages as vertices."""
        return self._graphs[1]

    @cached_property
    def _execution_graph(self) -> ExecutionGraph | None:
        """Its execution graph; None of a job with thousands of tasks."""
        tasks = sum(vertex.parallelism for vertex in self.job_graph.vertices.values())
        return ExecutionGraph(self.job_graph) if tasks <= MOST_TASKS else None

    @cached_property
    def facts(self) -> JobFacts:
        """What the rules of findings know of it."""
        plan, values = self._plan, self._values
        found = []
        for job_vertex, vertex in self._graphs[2]:
            operators: dict[int, Metrics] = {}
            top, above = NOTHING, vertex.above
            if plan is not None:
                operators = {
                    node.number: {**plan.metrics(node, values), **_cache(node, vertex)} for node in vertex.operators
                }
                top = plan.metrics(above, values) if above is not None else NOTHING
            known = vertex_facts(
                job_vertex,
                _attempts(job_vertex, vertex),
                StageMetrics(operators, top, WORDS),
                kind=vertex.kind,
                above=None if above is None else _metadata(above),
            )
            found.append(_with_line(known, vertex.stages[-1].name))
        helpers = [task._replace(role="helper") for vertex in self._vertices[1] for task in vertex.tasks]
        facts = JobFacts(
            vertices=tuple(found),
            started_ms=self.started_ms,
            ended_ms=self.ended_ms,
            slots=1,
            is_finished=self.status == "FINISHED",
            is_first=all(self.started_ms <= job.started_ms for job in self.app.jobs.values()),
            helpers=tuple(helpers),
        )
        slots = self.app.slots(self.started_ms, self.ended_ms) or max(1, facts.most_tasks)
        reads = {cache: number for cache in facts.caches if (number := self.app.reads_of_dropped(cache)) is not None}
        if self.is_run:
            reads = {}  # the rows that flinkmagic itself keeps are caches, too
        return replace(facts, slots=slots, slots_of_session=slots, reads_of_dropped_caches=reads)

    def findings(self) -> tuple[Finding, ...]:
        """Return what lost time in it, the most expensive first; of one that the log does not see end, so far."""
        return find(self.facts)

    def critical_path(self) -> CriticalPath | None:
        """Return the chain of stages that decided how long it took, and how long it would take otherwise."""
        return critical_path(self.facts, self._execution_graph)

    def views(self) -> list[GraphView]:
        """Return its job graph and its stream graph, painted."""
        stream_graph, job_graph, _ = self._graphs
        return [view.paint(self.snapshot) for view in (job_view(job_graph), stream_view(stream_graph, job_graph))]

    @cached_property
    def snapshot(self) -> JobSnapshot:
        """How far it is at the end of the log."""
        tasks = task_views(task for vertex in self.facts.vertices for task in vertex.attempts)
        return JobSnapshot(
            self.name,
            self.status,
            states={vertex.id: _states(vertex.attempts) for vertex in self.facts.vertices},
            elapsed_ms=self.elapsed_ms,
            slots_used=0,
            slots_total=self.facts.slots,
            started_at_ms=self.started_ms,
            tasks=tasks,
            errors=[ErrorView(error) for error in self._errors],
            costs=costs(tasks),
        )


def logged_runs(app: Application) -> list[LoggedRun]:
    """Return the jobs of an application of which a task has run, oldest first.

    The Spark jobs of a SQL execution are one job; so are those of the executions that it needs, and those of a run.
    """
    roots = {number: _root(app, execution) for number, execution in app.executions.items()}
    executions: dict[int, list[LoggedExecution]] = {}
    for number, execution in app.executions.items():
        executions.setdefault(roots[number], []).append(execution)
    of_execution: dict[int, list[LoggedJob]] = {}
    of_run: dict[str, list[LoggedJob]] = {}
    run_of = {roots[job.execution]: job.place.run for job in app.jobs.values() if job.place and job.execution in roots}
    executions_of: dict[str, list[LoggedExecution]] = {}
    for number, run in run_of.items():
        executions_of.setdefault(run, []).extend(executions[number])
    alone: list[LoggedJob] = []
    for job in app.jobs.values():
        root = roots.get(job.execution, _NO_ROOT) if job.execution is not None else _NO_ROOT
        if job.place is not None or root in run_of:
            of_run.setdefault(job.place.run if job.place is not None else run_of[root], []).append(job)
        elif root != _NO_ROOT:
            of_execution.setdefault(root, []).append(job)
        else:
            alone.append(job)
    runs = []
    for run, jobs in of_run.items():
        own = executions_of.get(run, [])
        runs.append(LoggedRun(app, f"run_{jobs[0].id}", _asked(jobs), own, jobs, is_run=True))
    for number, jobs in of_execution.items():
        own = sorted(executions[number], key=lambda one: one.id != number)
        runs.append(LoggedRun(app, f"query_{number}", own[0].description, own, jobs))
    for job in alone:
        stages = [app.stages[number].name for number in job.stages if number in app.stages]
        runs.append(LoggedRun(app, f"job_{job.id}", job.description or "".join(stages[-1:]), [], [job]))
    ran = [run for run in runs if any(stage.tasks for stage in run._stages)]
    return sorted(ran, key=lambda run: run.started_ms)


def _asked(jobs: list[LoggedJob]) -> str:
    """Return what a run was asked for: the line of an action, whose last stage has it, or the name of its graph."""
    last = jobs[-1]
    is_action = last.place is not None and last.place.kind == "result" and last.call != last.description
    return last.call if is_action else last.call.partition(": ")[0]


def _plan_of(executions: Sequence[LoggedExecution], measured: Sequence[AbstractSet[int]]) -> LoggedPlan | None:
    """Return the plan of executions; None if the log has none that can be read, or thousands of operators."""
    try:
        events = [event for one in executions if (event := one.plan_event()) is not None]
        if not events:
            return None
        plan = read_plan([event["sparkPlanInfo"] for event in events], measured)
    except WRONG:
        return None
    return plan if len(plan.accumulators) <= _MOST_OPERATORS else None


def _root(app: Application, execution: LoggedExecution) -> int:
    """Return the execution that needs one, itself if none does, or if the log does not have that."""
    return execution.root if execution.root in app.executions else execution.id


def _transformations(vertices: list[LoggedVertex]) -> list[Transformation]:
    """Return the last operator of each vertex."""
    read = {id(producer) for vertex in vertices for producer, _, _ in vertex.reads}
    last: dict[int, Transformation] = {}
    tails = []
    for vertex in vertices:
        tasks = max(1, len({task.subtask for task in vertex.tasks}))
        made: dict[int, Transformation] = {}
        for node in vertex.operators:
            inputs = [made[child.number] for child in node.children if child.number in made]
            inputs += [
                PartitionTransformation(last[id(producer)], partitioner, StreamExchangeMode.BATCH)
                for producer, partitioner, reader in vertex.reads
                if reader == node.number
            ]
            made[node.number] = tail = _operator(node, inputs, tasks)
        if id(vertex) not in read:
            tail = _sink(tail, vertex.above, tasks)
        last[id(vertex)] = tail
        tails.append(tail)
    return tails


def _sink(rows: Transformation, command: PlanNode | None, tasks: int) -> Transformation:
    metadata = {} if command is None else _metadata(command)
    title = "result" if command is None else _written(command)
    return SinkTransformation(rows, title, parallelism=tasks, metadata={**metadata, "name": title, "role": "sink"})


def _operator(node: PlanNode, inputs: list[Transformation], tasks: int) -> Transformation:
    common: dict[str, Any] = {"parallelism": tasks, "metadata": _metadata(node)}
    if len(inputs) > 1:
        common["chaining_strategy"] = ChainingStrategy.HEAD_WITH_INPUTS
    return operator_on(inputs, node.name if inputs else source_name(node), **common)


def _written(command: PlanNode) -> str:
    """Return what a write's command writes, in a few words: ``parquet rows``."""
    found = _WRITTEN.search(command.text)
    return f"{found[2].lower()} {found[1]}" if found is not None else command.name.removeprefix("Execute ")


def _metadata(node: PlanNode) -> dict[str, Any]:
    told = {"operator": node.name, "text": spark_text(node), "kind": node.kind, "node": node.number}
    is_of_rdd = node.kind == node.name
    return told if is_of_rdd or node.kind.startswith("Execute") else {**told, "does": does(node), "reads": tables(node)}


def _cache(node: PlanNode, vertex: LoggedVertex) -> Metrics:
    """Return the number of the cache that an operator scans; nothing if several scans of its stage have its name."""
    if node.kind != CACHED_SCAN:
        return NOTHING
    found = {cache for stage in vertex.stages for name, cache in stage.caches if name == node.name}
    return {"cacheId": found.pop()} if len(found) == 1 else NOTHING


def _attempts(job_vertex: JobVertex, vertex: LoggedVertex) -> list[TaskRecord]:
    """Return the attempts of a vertex's tasks: its subtasks are the partitions of which a task has begun."""
    tasks = sorted(vertex.tasks, key=lambda task: (task.start_ms, task.task_id))
    position = {subtask: index for index, subtask in enumerate(sorted({task.subtask for task in tasks}))}
    slots = _slots(tasks)
    return [
        task._replace(
            vertex_id=job_vertex.id,
            vertex=job_vertex.name,
            subtask=position[task.subtask],
            slot=slots[task.task_id],
            bytes_out=task.bytes_out if vertex.kind == "broadcast" or task.rows_out is not None else None,
        )
        for task in tasks
    ]


def _slots(tasks: list[TaskRecord]) -> dict[int, str]:
    """Return the slot of each task by its id: the first one of its executor that no other task has."""
    free: dict[str, list[int]] = {}
    busy: dict[str, list[tuple[float, int]]] = {}
    found: dict[int, str] = {}
    for task in tasks:
        own_free, own_busy = free.setdefault(task.executor, []), busy.setdefault(task.executor, [])
        while own_busy and own_busy[0][0] <= task.start_ms:
            heapq.heappush(own_free, heapq.heappop(own_busy)[1])
        number = heapq.heappop(own_free) if own_free else len(own_busy)
        heapq.heappush(own_busy, (float("inf") if task.end_ms is None else task.end_ms, number))
        found[task.task_id] = f"{task.executor}_{number}"
    return found


def _with_line(vertex: VertexFacts, stage: str) -> VertexFacts:
    """Return a vertex whose operators have the line of its stage's call, if the stage's name has one."""
    call = _CALL.match(stage)
    if call is None:
        return vertex
    at = partial(replace, code=call[1], cell=call[2], line=int(call[3]))
    return replace(vertex, operators=tuple(map(at, vertex.operators)))


def _states(attempts: tuple[TaskRecord, ...]) -> bytes:
    """Return the state of each subtask: that of its last attempt, unless one has finished."""
    states: dict[int, ExecutionState] = {}
    for task in attempts:
        if states.get(task.subtask) is not ExecutionState.FINISHED:
            states[task.subtask] = task.state
    return bytes(states[subtask].value for subtask in sorted(states))
