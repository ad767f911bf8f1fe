"""What `with_options` does to the graphs, and that rows and Spark's stages stay as they are."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.operator_options import with_options
from flinkmagic.errors.capturing import OperatorOptionsError
from flinkmagic.graph.chaining import Chaining
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.stream_graph_hasher import generate_hashes
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan


def shape(graph):
    return [(each.name, each.parallelism) for each in graph.vertices_in_topological_order()]


def test_the_job_of_flinks_documentation(spark):
    """Source and map with parallelism 4, reduce with 3, all in one slot sharing group."""

    with capture(spark) as program:
        source = with_options(spark.range(0, 100, 1, 4), name="Source", slot_sharing_group="pipeline")
        mapped = with_options(source.select((F.col("id") % 7).alias("key"), "id"), name="Map", chaining="head")
        reduced = with_options(mapped.groupBy("key").agg(F.sum("id").alias("total")), name="Reduce")
    job = plan(program, JobOptions(parallelism=3))
    assert list(program.results) == ["reduced"]
    assert reduced is program.results["reduced"]
    graph = create_job_graph(job.environment.get_stream_graph())
    assert shape(graph) == [("Source: Source", 4), ("Map -> HashAggregate", 4), ("Reduce -> Sink: reduced", 3)]
    assert [group.name for group in graph.slot_sharing_groups] == ["pipeline"]
    assert {(edge.partitioner.kind.name, edge.result_type.name) for edge in graph.edges} == {
        ("FORWARD", "PIPELINED_BOUNDED"),
        ("HASH", "BLOCKING"),
    }
    execution = ExecutionGraph(graph)
    assert (execution.n_vertices, execution.pipelined_regions.count) == (11, 7)
    assert any("Spark gives each task a core of its own" in warning for warning in job.warnings)


def test_a_uid_makes_the_operators_id(spark):
    ids = []
    for before in (0, 2):
        with capture(spark) as program:
            df = spark.range(4)
            for number in range(before):
                df = df.withColumn(f"x{number}", F.rand())
            total = with_options(df.groupBy().agg(F.sum("id").alias("s")), uid="total")
        del total
        graph = plan(program).environment.get_stream_graph()
        (node,) = [node for node in graph.nodes.values() if node.uid == "total"]
        ids.append(generate_hashes(graph, Chaining(graph))[node.id])
    assert ids[0] == ids[1]


def test_one_uid_for_two_operators_is_refused_with_both_lines(spark):
    with capture(spark) as program:
        one = with_options(spark.range(4).select((F.col("id") + 1).alias("a")), uid="same")
        two = with_options(spark.range(5).select((F.col("id") + 2).alias("b")), uid="same")
    del one, two
    with pytest.raises(OperatorOptionsError, match=r"the uid 'same' is taken: .*line \d+ gave it to another"):
        plan(program)


def test_an_operator_that_spark_plans_twice_has_its_name_twice_and_two_uids(spark):
    with capture(spark) as program:
        base = with_options(spark.range(8).select((F.col("id") * 2).alias("twice")), name="Double", uid="double")
        low, high = base.where("twice < 5"), base.where("twice > 5")
    del low, high
    graph = plan(program, JobOptions(parallelism=2)).environment.get_stream_graph()
    named = [node for node in graph.nodes.values() if node.name == "Double"]
    assert sorted(node.uid for node in named) == ["double", "double-2"]


def test_groups_hold_for_the_whole_stage(spark):
    with capture(spark) as program:
        df = spark.range(0, 100, 1, 4).select((F.col("id") % 3).alias("key"))
        with_options(df, slot_sharing_group="blue", max_parallelism=64)
        counted = df.groupBy("key").count()
    del counted
    graph = create_job_graph(plan(program, JobOptions(parallelism=3)).environment.get_stream_graph())
    vertices = graph.vertices_in_topological_order()
    assert len(vertices) == 2
    assert vertices[0].max_parallelism == 64
    assert {vertex.slot_sharing_group.name for vertex in vertices} == {"blue"}  # handed down, as in Flink


def test_two_groups_in_one_stage_are_refused(spark):
    with capture(spark) as program:
        source = with_options(spark.range(0, 100, 1, 4), slot_sharing_group="a")
        mapped = with_options(source.select((F.col("id") % 3).alias("key")), slot_sharing_group="b")
    del mapped
    with pytest.raises(OperatorOptionsError, match=r"'b' is asked for .* asks for 'a' in the same Spark stage"):
        plan(program)


def test_more_partitions_than_max_parallelism_are_refused(spark):
    with capture(spark) as program:
        source = with_options(spark.range(0, 100, 1, 4), max_parallelism=3)
    del source
    with pytest.raises(OperatorOptionsError, match=r"max_parallelism is 3, and .* has 4 partitions"):
        plan(program)


def test_never_parts_an_operator_from_both_sides(spark):
    with capture(spark) as program:
        numbers = spark.range(0, 8, 1, 2)
        doubled = with_options(numbers.select((F.col("id") * 2).alias("n"), "id"), name="Double", chaining="never")
        kept = doubled.select(F.explode(F.array("n", "id")).alias("one"))
    job = plan(program, JobOptions(parallelism=2))
    del kept
    graph = create_job_graph(job.environment.get_stream_graph())
    assert [name for name, _ in shape(graph)] == ["Source: Range", "Double", "Generate -> Sink: kept"]


def test_a_chain_is_not_broken_where_a_task_spans_partitions(spark):
    with capture(spark) as program:
        narrow = with_options(spark.range(0, 8, 1, 4).coalesce(2), chaining="head")
    del narrow
    with pytest.raises(OperatorOptionsError, match=r"cannot be broken between .*4 partitions.*2\): Spark runs several"):
        plan(program)


def test_a_union_of_broken_chains_is_refused_too(spark):
    with capture(spark) as program:
        left = with_options(spark.range(0, 8, 1, 4).select(F.rand(1).alias("id")), chaining="never")
        both = left.union(spark.range(0, 4, 1, 2).select(F.rand(2)))
    del both
    with pytest.raises(OperatorOptionsError, match="Leave out the chaining"):
        plan(program)


def test_a_mark_that_meets_no_operator_is_said(spark):
    with capture(spark) as program:
        same = with_options(spark.range(4).select("id").where("1 = 1"), name="Nothing")
    del same
    (warning,) = plan(program).warnings
    assert "with_options marks nothing" in warning


def test_co_located_operators_of_one_stage(spark):
    with capture(spark) as program:
        source = with_options(spark.range(0, 8, 1, 4), co_location_group="together")
        mapped = with_options(source.select((F.col("id") * 2).alias("n")), chaining="head")
    del mapped
    graph = create_job_graph(plan(program).environment.get_stream_graph())
    (group,) = graph.co_location_groups
    assert (group.name, {vertex.name for vertex in group.vertices}) == ("together", {name for name, _ in shape(graph)})
    assert len(group.vertices) == 2
