"""Streaming queries as graphs, before they start."""

from __future__ import annotations

import pytest
from pyspark.sql import GroupedData
from pyspark.sql import functions as F

from flinkmagic.graph.exchange_mode import RuntimeExecutionMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.session import capture, compile


def compiled(spark, program, **options):
    return compile(program, mode="streaming", **options)


def test_two_queries_are_one_graph_with_a_region_each(spark) -> None:
    with capture(spark, name="two", mode="streaming") as program:
        ticks = spark.readStream.format("rate").option("numPartitions", 3).load()
        for name, key in (("a", 2), ("b", 3)):
            counts = ticks.groupBy((F.col("value") % key).alias("k")).count()
            counts.writeStream.format("memory").queryName(name).outputMode("complete").start()
    graph = compiled(spark, program, parallelism=4)
    assert graph.job_graph.job_type is RuntimeExecutionMode.STREAMING
    widths = [vertex.parallelism for vertex in graph.job_graph.vertices_in_topological_order()]
    assert sorted(widths) == [3, 3, 4, 4]
    edges = [edge for vertex in graph.job_graph.vertices.values() for edge in vertex.inputs]
    assert len(edges) == 2
    assert ExecutionGraph(graph.job_graph).pipelined_regions.count == 2
    kinds = [(node.metadata or {}).get("kind") for node in graph.stream_graph.nodes.values()]
    assert kinds.count("StateStoreSaveExec") == 2
    assert [sink.name for sink in graph.sinks] == ["a", "b"]
    assert "Needs 4 slots together and has 2" in graph.summary()
    calls = {(node.metadata or {}).get("call") for node in graph.stream_graph.nodes.values()}
    assert 'groupBy((F.col("value") % key).alias("k")).count()' in calls
    assert spark.streams.active == []


def test_joins_and_watermarks_of_streams_have_the_lines_of_their_own_calls(spark) -> None:
    with capture(spark, mode="streaming") as program:
        ticks = spark.readStream.format("rate").load()
        left = ticks.selectExpr("value AS l", "timestamp AS at")
        left = left.withWatermark("at", "10 seconds")
        right = ticks.selectExpr("value AS r", "timestamp AS then")
        right = right.withWatermark("then", "20 seconds")
        pairs = left.join(right, F.expr("l = r AND then BETWEEN at AND at + INTERVAL 5 SECONDS"))
        pairs.writeStream.format("noop").start()
    found = [node.metadata or {} for node in compiled(spark, program).stream_graph.nodes.values()]
    calls = {(facts["kind"], facts["call"].partition("(")[0]) for facts in found if "kind" in facts and "call" in facts}
    assert ("StreamingSymmetricHashJoinExec", "join") in calls
    assert {call for kind, call in calls if kind == "EventTimeWatermarkExec"} == {"withWatermark"}
    marks = {facts["call"] for facts in found if facts.get("kind") == "EventTimeWatermarkExec"}
    assert marks == {'withWatermark("at", "10 seconds")', 'withWatermark("then", "20 seconds")'}


def test_shuffles_are_as_wide_as_the_slots_unless_one_says_otherwise(spark) -> None:
    with capture(spark, mode="streaming") as program:
        ticks = spark.readStream.format("rate").load()
        ticks.groupBy("value").count().writeStream.format("noop").outputMode("complete").start()
    widest = max(vertex.parallelism for vertex in compiled(spark, program).job_graph.vertices.values())
    assert widest == spark.sparkContext.defaultParallelism


@pytest.mark.parametrize("method", ["transformWithState", "transformWithStateInPandas"])
@pytest.mark.parametrize("times", ["None", "ProcessingTime", "EventTime"])
def test_a_function_with_state_is_a_keyed_process(spark, method, times) -> None:
    if not hasattr(GroupedData, method):
        pytest.skip("Spark 4 has it")
    from pyspark.sql.streaming import StatefulProcessor

    class Counts(StatefulProcessor):
        def init(self, handle):
            self.counts = handle.getValueState("counts", "n long", None if times == "None" else 60_000)

        def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803 - Spark's names
            yield from rows

        def close(self):
            pass

    with capture(spark, mode="streaming") as program:
        ticks = spark.readStream.format("rate").load().withWatermark("timestamp", "10 seconds")
        keyed = ticks.withColumn("k", F.col("value") % 3).groupBy("k")
        counts = getattr(keyed, method)(Counts(), "k long, value long", "Append", times)
        counts.writeStream.format("noop").start()
    graph = compiled(spark, program, parallelism=2)
    (node,) = (one for one in graph.stream_graph.nodes.values() if one.name == "KeyedProcess")
    facts = node.metadata or {}
    assert facts["operator"].startswith("KeyedProcess (TransformWithStateIn")
    assert facts["call"].startswith('groupBy("k").')
    assert facts["line"] == program.streams[0].location.line - 1
    (edge,) = (edge for vertex in graph.job_graph.vertices.values() for edge in vertex.inputs)
    assert edge.partitioner.kind is PartitionerKind.HASH
    assert [vertex.name for vertex in graph.job_graph.vertices_in_topological_order()][1].endswith(
        "KeyedProcess -> Sink: noop"
    )


def test_the_initial_state_of_a_keyed_process_is_its_second_input(spark) -> None:
    if not hasattr(GroupedData, "transformWithStateInPandas"):
        pytest.skip("Spark 4 has it")
    from pyspark.sql.streaming import StatefulProcessor

    class Nothing(StatefulProcessor):
        def init(self, handle):
            pass

        def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803 - Spark's names
            yield from rows

        def close(self):
            pass

    with capture(spark, mode="streaming") as program:
        first = spark.range(4).selectExpr("id AS k", "id AS n").groupBy("k")
        keyed = spark.readStream.format("rate").load().selectExpr("value AS k", "value").groupBy("k")
        kept = keyed.transformWithStateInPandas(Nothing(), "k long, value long", "Append", "None", first)
        kept.writeStream.format("noop").start()
    graph = compiled(spark, program, parallelism=2)
    (node,) = (one for one in graph.stream_graph.nodes.values() if one.name == "KeyedProcess")
    assert len(node.in_edges) == 2
