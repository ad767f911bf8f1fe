"""A small job as snapshots, so that drawing is tested without compiling anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from flinkmagic.display.execution_views import MAX_PAIRS
from flinkmagic.display.findings import Finding, FindingsView
from flinkmagic.display.snapshot import EdgeView, GraphView, JobSnapshot, NodeView, OperatorLine
from tests.display.states import state_codes

AGG = 'groupBy("hour").agg(F.avg("dep_delay").alias("delay"))'


def _line(call: str, operator: str, line: int) -> OperatorLine:
    return OperatorLine(call, operator, f"line {line}", f"x = {call}")


def make_view(kind: str = "job", wide: int = 4) -> GraphView:
    """Two sources, a broadcast join that two sinks share."""
    nodes = (
        NodeView(
            "v1", "source", "Source: flights -> Filter",
            (_line('spark.read.parquet("flights")', "Scan parquet", 1), _line('where("dep_delay > 15")', "Filter", 2)),
            4, "v1",
        ),
        NodeView("v2", "source", "Source: carriers", (_line('spark.read.csv("airlines")', "Scan csv", 3),), 1, "v2"),
        NodeView(
            "v3", "join", "Join",
            (_line('join(carriers, "carrier")', "BroadcastHashJoin", 4), _line(AGG, "HashAggregate", 5)),
            4, "v3", badges=("shared by 2",),
        ),
        NodeView("v4", "sink", "Sink: by_hour", (_line('by_hour.write.parquet("out/by_hour")', "Insert", 7),), 4, "v4"),
        NodeView("v5", "sink", "Sink: by_line", (_line('by_line.write.csv("out/by_line")', "Insert", 8),), wide, "v5"),
    )  # fmt: skip
    edges = (
        EdgeView("v1", "v3", "FORWARD", "PIPELINED_BOUNDED"),
        EdgeView("v2", "v3", "BROADCAST", "BLOCKING"),
        EdgeView("v3", "v4", "HASH", "BLOCKING"),
        EdgeView("v3", "v5", "RANGE", "BLOCKING"),
    )
    if kind == "execution":
        width = {node.id: node.parallelism for node in nodes}
        edges = tuple(
            replace(
                edge,
                pairs=tuple((i, i) for i in range(4)) if edge.partitioner == "FORWARD" else tuple(
                    (i, j) for i in range(width[edge.source]) for j in range(width[edge.target])
                ) if width[edge.source] * width[edge.target] <= MAX_PAIRS else None,
            )
            for edge in edges
        )  # fmt: skip
    return GraphView(kind, "delays", nodes, edges, summary="6 operators in 5 job vertices, 17 tasks")  # type: ignore[arg-type]


def finding(vertex_id: str = "v3", **more: Any) -> Finding:
    """A skew at a vertex."""
    known = {
        "rule": "skewed-partition", "certainty": "measured", "what": "partition 6 of 8 has most rows", "cost_s": 19.4,
        "estimate": "measured: the time for which slots idled", "cell": "cell 2", "line": 5, "code": f"x = {AGG}",
        "vertex": "Aggregate", "operator": "HashAggregate", "cure": 'df.repartition("key", "other")',
    }  # fmt: skip
    return Finding(vertex_id=vertex_id, **{**known, **more})


@pytest.fixture
def found() -> FindingsView:
    """Two findings at the join, one at a sink."""
    path = "of 12.0 s, 9.8 s is the critical path, 1.1 s the driver"
    spill = finding(rule="spill", certainty="likely", cost_s=1.2, estimate="estimated: by its bytes")
    return FindingsView(path, (finding(), spill, finding("v5", cure="F.upper(col)")))


@pytest.fixture
def view() -> Callable[..., GraphView]:
    return make_view


@pytest.fixture
def snapshot() -> JobSnapshot:
    """The source half done, one failed task, the rest not begun."""
    return JobSnapshot(
        "delays", "RUNNING", 4210.0,
        {
            "v1": state_codes(["FINISHED", "FINISHED", "RUNNING", "SCHEDULED"]),
            "v2": state_codes(["FINISHED"]),
            "v3": state_codes(["FAILED", "CANCELED", "DEPLOYING", "CANCELING"]),
            "v4": state_codes(["CREATED"] * 4),
            "v5": state_codes(["CREATED"] * 4),
        },
        slots_used=3, slots_total=4,
    )  # fmt: skip
