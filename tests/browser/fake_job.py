"""Run by notebooks of the browser tests: a job view whose job is made up, so that every state can be shown at will."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from flinkmagic.display import execution_view, job_view, regions_view, stream_view
from flinkmagic.display.findings import Finding, FindingsView
from flinkmagic.display.measures import StageLink, VertexMeasures
from flinkmagic.display.page import mime_bundle
from flinkmagic.display.snapshot import STATE_NAMES, ErrorView, JobSnapshot, NodeView, TaskView
from flinkmagic.display.widget import JobView
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import ChainingStrategy, RuntimeExecutionMode, StreamExchangeMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
)

HOUR = 'groupBy("hour").agg(F.avg("dep_delay").alias("delay"))'
NAME = 'groupBy("name").count()'


def said(call: str, operator: str, line: int, variable: str = "") -> dict[str, object]:
    code = f"{variable} = {call}" if variable else call
    return {
        "call": call,
        "operator": operator,
        "line": line,
        "cell": "cell 3",
        "variable": variable,
        "code": code,
    }


def exchange(upstream: Transformation, kind: PartitionerKind) -> PartitionTransformation:
    return PartitionTransformation(upstream, kind, StreamExchangeMode.BATCH)


def delays(parallelism: int = 4, wide: int = 4) -> tuple[StreamGraph, ExecutionGraph]:
    """Late flights by hour and by airline: a shared join, two sinks."""
    env = StreamExecutionEnvironment("delays", RuntimeExecutionMode.BATCH, parallelism)
    read = said('spark.read.parquet("data/flights.parquet")', "Scan parquet", 1, "flights")
    flights = SourceTransformation("flights", metadata=read)
    late = OneInputTransformation(flights, "Filter", metadata=said('where("dep_delay > 15")', "Filter", 2, "late"))
    airlines = said('spark.read.csv("data/airlines.csv", header=True)', "Scan csv", 3, "carriers")
    carriers = SourceTransformation("carriers", parallelism=1, metadata=airlines)
    join = TwoInputTransformation(
        late, exchange(carriers, PartitionerKind.BROADCAST), "BroadcastHashJoin",
        chaining_strategy=ChainingStrategy.HEAD_WITH_INPUTS,
        metadata=said('join(carriers, "carrier")', "BroadcastHashJoin", 4, "late"),
    )  # fmt: skip
    one = OneInputTransformation(join, "Agg", metadata=said(HOUR, "HashAggregate (partial)", 5, "by_hour"))
    two = OneInputTransformation(join, "Agg", metadata=said(NAME, "HashAggregate (partial)", 6, "by_line"))
    hour = OneInputTransformation(
        exchange(one, PartitionerKind.HASH), "Agg", parallelism=wide,
        metadata=said(HOUR, "HashAggregate", 5, "by_hour"),
    )  # fmt: skip
    write = 'by_hour.write.mode("overwrite").parquet("out/by_hour")'
    sink = SinkTransformation(hour, "by_hour", parallelism=wide, metadata=said(write, "InsertIntoHadoopFs", 7))
    name = OneInputTransformation(
        exchange(two, PartitionerKind.HASH), "Agg", metadata=said(NAME, "HashAggregate", 6, "by_line")
    )
    ordered = OneInputTransformation(
        exchange(name, PartitionerKind.RANGE), "Sort",
        metadata=said('orderBy(F.desc("count"))', "Sort", 6, "by_line"),
    )  # fmt: skip
    write = 'by_line.write.mode("overwrite").csv("out/by_line")'
    other = SinkTransformation(ordered, "by_line", metadata=said(write, "InsertIntoHadoopFs", 8))
    for operator in (late, join, one, two, hour, sink, name, ordered, other):
        env.add_operator(operator)
    stream_graph = env.get_stream_graph()
    return stream_graph, ExecutionGraph(create_job_graph(stream_graph))


def large(vertices: int = 500) -> tuple[StreamGraph, ExecutionGraph]:
    """Subject areas of about 20 vertices: four tables, aggregated in several steps, joined pairwise, written twice."""
    env = StreamExecutionEnvironment("warehouse", RuntimeExecutionMode.BATCH, 8)
    made = 0
    area = 0
    while made < vertices:
        area += 1
        ends: list[Transformation] = []
        for table in range(4):
            name = f"area{area}_table{table}"
            at: Transformation = SourceTransformation(name, metadata=said(f'spark.table("{name}")', "Scan", area, name))
            for step in range(1 + (area + table) % 3):
                at = aggregated(env, at, f"key{step}", area)
            ends.append(at)
            made += 2 + (area + table) % 3
        left, right = joined(env, ends[0], ends[1], area), joined(env, ends[2], ends[3], area)
        top = joined(env, left, right, area)
        for number, at in enumerate((aggregated(env, top, "day", area), aggregated(env, top, "month", area))):
            write = said(f'out.write.parquet("out/area{area}_{number}")', "InsertIntoHadoopFs", area)
            env.add_operator(SinkTransformation(exchange(at, PartitionerKind.RANGE), f"area{area}", metadata=write))
        made += 7
    stream_graph = env.get_stream_graph()
    return stream_graph, ExecutionGraph(create_job_graph(stream_graph))


def aggregated(env: StreamExecutionEnvironment, upstream: Transformation, key: str, line: int) -> Transformation:
    call = f'groupBy("{key}").agg(F.sum("amount").alias("total"))'
    made = OneInputTransformation(
        exchange(upstream, PartitionerKind.HASH),
        "HashAggregate",
        metadata=said(call, "HashAggregate", line),
    )
    env.add_operator(made)
    return made


def joined(env: StreamExecutionEnvironment, left: Transformation, right: Transformation, line: int) -> Transformation:
    made = TwoInputTransformation(
        exchange(left, PartitionerKind.HASH), exchange(right, PartitionerKind.HASH), "SortMergeJoin",
        metadata=said('join(other, "id")', "SortMergeJoin", line),
    )  # fmt: skip
    env.add_operator(made)
    return made


class FakeJob:
    """Runs through the job's vertices in order, `slots` tasks at a time; fails or is cancelled on demand."""

    def __init__(
        self,
        stream_graph: StreamGraph,
        graph: ExecutionGraph,
        slots: int = 4,
        fail_at: tuple[int, int] | None = None,
    ) -> None:
        self.stream_graph, self.graph, self.slots, self.fail_at = stream_graph, graph, slots, fail_at
        self.cancelled = threading.Event()
        self.thread: threading.Thread | None = None
        self.clicks: list[str] = []
        self.earlier: list[TaskView] = []
        job_graph = graph.job_graph
        self.view = JobView(
            [stream_view(stream_graph, job_graph), job_view(job_graph), execution_view(graph), regions_view(graph)],
            on_run=self.start,
            on_cancel=self.cancel,
        )

    def wait_drawn(self) -> None:
        """Wait until every picture of the view is laid out."""
        self.view._drawing.join()

    def saved(self, summary: str = "", notes: Sequence[str] = ()) -> dict[str, str]:
        """What a saved notebook keeps of the view, in the colours of its last snapshot."""
        snapshot = self.view._snapshot
        assert snapshot is not None
        views = [self.view.view(kind).paint(snapshot) for kind in ("stream", "job", "execution", "regions")]
        return dict(mime_bundle(views, summary=summary, snapshot=snapshot, notes=notes))

    def start(self, seconds: float = 3.0) -> None:
        self.clicks.append("run")
        self.cancelled.clear()
        self.thread = threading.Thread(target=self.run, args=(seconds,))
        self.thread.start()

    def cancel(self) -> None:
        self.clicks.append("cancel")
        self.cancelled.set()

    def run(self, seconds: float, until: float = 1.0) -> None:
        """Play the job, up to a share of its tasks; every step is one snapshot, in no time only the last."""
        states = {v.id: ["CREATED"] * v.parallelism for v in self.graph.job_vertices}
        tasks = [(v.id, i) for v in self.graph.job_vertices for i in range(v.parallelism)]
        made: dict[tuple[str, int], TaskView] = {}
        began = time.time() * 1000
        stop = round(len(tasks) * until)
        step = seconds / max(len(tasks), 1)
        for position, (vertex, subtask) in enumerate(tasks[:stop]):
            if self.cancelled.is_set():
                self.end(states, made, began, "CANCELED")
                return
            if self.fail_at == (self.vertex_number(vertex), subtask):
                self.fail(states, made, began, vertex, subtask)
                return
            self.move(states, made, tasks, position)
            if step:
                self.show(states, made, began, "RUNNING")
                time.sleep(step)
        if until >= 1.0:
            self.end(states, made, began, "FINISHED")
        else:
            self.show(states, made, began, "RUNNING")

    def move(
        self,
        states: dict[str, list[str]],
        made: dict[tuple[str, int], TaskView],
        tasks: list[tuple[str, int]],
        position: int,
    ) -> None:
        now = time.time() * 1000
        for ahead in range(self.slots + 2):
            if position + ahead >= len(tasks):
                break
            vertex, subtask = tasks[position + ahead]
            state = "FINISHED" if ahead == 0 else "RUNNING" if ahead < self.slots else "SCHEDULED"
            if ahead == self.slots - 1:
                state = "DEPLOYING"
            states[vertex][subtask] = state
            if state == "SCHEDULED":
                continue
            old = made.get((vertex, subtask))
            start = old.start_ms if old else now
            slot = old.slot if old else f"executor 1:{(position + ahead) % self.slots}"
            rows = 1000 * (subtask + 1) ** 2
            made[vertex, subtask] = TaskView(
                vertex, subtask, 0, state, slot, "executor 1", start, now if state == "FINISHED" else None,
                rows, rows // 10, rows * 64, rows * 6,
            )  # fmt: skip

    def vertex_number(self, vertex: str) -> int:
        return [v.id for v in self.graph.job_vertices].index(vertex)

    def fail(
        self,
        states: dict[str, list[str]],
        made: dict[tuple[str, int], TaskView],
        began: float,
        vertex: str,
        subtask: int,
    ) -> None:
        states[vertex][subtask] = "FAILED"
        reason = "ValueError: could not convert string to float: '<b>12,5</b>'"
        first = made[vertex, subtask]
        lost = replace(first, state="FAILED", end_ms=first.start_ms, slot="executor 2:0", error="Executor lost")
        self.earlier = [lost]
        made[vertex, subtask] = replace(first, attempt=1, state="FAILED", error=reason)
        title = next(node.title for node in self.view.view("job").nodes if node.id == vertex)
        parallelism = len(states[vertex])
        error = ErrorView(
            reason,
            f"{title} ({subtask + 1}/{parallelism}), cell 3, line 5", vertex,
            'File "cell 3", line 5, in to_minutes\n    return float(text)\nValueError: could not convert',
        )  # fmt: skip
        self.end(states, made, began, "FAILED", [error])

    def end(
        self,
        states: dict[str, list[str]],
        made: dict[tuple[str, int], TaskView],
        began: float,
        status: str,
        errors: list[ErrorView] | None = None,
    ) -> None:
        now = time.time() * 1000
        over = {"FINISHED": "FINISHED"}.get(status, "CANCELED")
        for vertex, names in states.items():
            for subtask, state in enumerate(names):
                if state in ("RUNNING", "DEPLOYING", "SCHEDULED") or (over == "CANCELED" and state == "CREATED"):
                    names[subtask] = over
                if (vertex, subtask) in made and made[vertex, subtask].end_ms is None:
                    made[vertex, subtask] = replace(made[vertex, subtask], state=names[subtask], end_ms=now)
        self.show(states, made, began, status, errors or [])

    def vertex(self, role: str) -> NodeView:
        return next(node for node in self.view.view("job").nodes if node.role == role)

    def findings(self) -> FindingsView:
        """Two at the vertex that counts by name, and one at the join."""
        counts, join = self.vertex("operator"), self.vertex("join")
        skew = Finding(
            rule="skewed-partition", certainty="measured", cost_s=19.4, operator="HashAggregate",
            what="partition 4 of 4 has 31.2 times as much as the others: its task took 7.1 s, the median 420 ms",
            estimate="measured: the time for which slots idled after the vertex's other tasks",
            cell="cell 3", line=6, code=f"by_line = {NAME}.orderBy(F.desc(\"count\"))",
            vertex=counts.name, vertex_id=counts.vertex_id,
            cure='df.groupBy("key", (F.rand() * 8).cast("int").alias("salt")).agg(...).groupBy("key").agg(...)',
        )  # fmt: skip
        spill = replace(
            skew, rule="spill", certainty="likely", cost_s=1.2, operator="",
            what="1 task of 4 wrote 24.0 MiB of rows to disk that did not fit into memory",
            estimate="estimated: 10 ms for each MB on disk (3 to 24 were measured), at most the time of these tasks",
            cure="%config FlinkMagics.parallelism = 16  # smaller partitions",
        )  # fmt: skip
        python = replace(
            skew, rule="python-functions", certainty="possible", cost_s=0.64, line=4,
            code='late = late.join(carriers, "carrier")', vertex=join.name, vertex_id=join.vertex_id,
            what="Python functions take 640 ms of the stage's 1.1 s, for 3.0 K rows, row by row",
            operator="BatchEvalPython", estimate="measured: the time of Python workers", cure="F.upper(col)",
        )  # fmt: skip
        return FindingsView("of 12.0 s, 9.8 s is the critical path, 1.1 s the driver", (skew, spill, python))

    def measures(self) -> dict[str, VertexMeasures]:
        """The same time in each vertex; each operator has made as many rows as its number says."""
        parts = {"computing": 5200.0, "Python": 2100.0, "sorting": 400.0, "shuffle read wait": 900.0,
                 "garbage collection": 300.0, "serialization": 60.0, "scheduler delay": 240.0}  # fmt: skip
        return {
            node.vertex_id: VertexMeasures(
                parts, (("spilled (disk)", "24.0 MiB"),),
                {
                    id: (
                        ("number of output rows", f"{1000 * id:,}"), ("sort time", "400 ms"),
                        ("peak memory", "64.0 MiB"),
                    )
                    for line in node.operators for id in line.node_ids
                },
                (("shuffle bytes written", "18.7 MiB"),),
                (StageLink(f"stage {place}", f"http://127.0.0.1:9/stages/stage/?id={place}&attempt=0"),),
            )
            for place, node in enumerate(self.view.view("job").nodes)
        }  # fmt: skip

    def show(
        self,
        states: dict[str, list[str]],
        made: dict[tuple[str, int], TaskView],
        began: float,
        status: str,
        errors: list[ErrorView] | None = None,
    ) -> None:
        is_over = status == "FINISHED"
        flat = [state for names in states.values() for state in names]
        used = sum(state in ("RUNNING", "DEPLOYING") for state in flat)
        self.view.update(
            JobSnapshot(
                self.graph.job_graph.name, status, time.time() * 1000 - began,
                {vertex: bytes(map(STATE_NAMES.index, names)) for vertex, names in states.items()},
                used, self.slots, began, (*self.earlier, *made.values()), tuple(errors or ()),
                findings=self.findings() if is_over else None, measures=self.measures() if is_over else {},
            )
        )  # fmt: skip
