"""A stage of which the user broke the operator chain: several job vertices, one Spark stage."""

from __future__ import annotations

import pytest
from fake_spark import FakeSpark, graph_of

from flinkmagic.deployment.board.stage_members import StageMembers
from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import RuntimeExecutionMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.transformations import SinkTransformation, SourceTransformation
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus

BROKEN = {"Source": (2, []), "Map": (2, ["~Source"]), "Reduce": (1, ["Map"])}


def index_of(graph, name):
    return next(vertex.index for vertex in graph.job_vertices if name in vertex.name)


def test_the_last_vertex_of_a_stage_stands_for_it():
    graph = graph_of(BROKEN)
    members = StageMembers(graph)
    source, map_, reduce = (index_of(graph, name) for name in ("Source: ", "Map", "Reduce"))
    assert [members.lead_of(index) for index in (source, map_, reduce)] == [map_, map_, reduce]
    first = graph.job_vertices[source].first
    assert members.task_of(first + 1) == (map_, 1)


def test_the_vertices_of_one_task_share_a_slot():
    graph = graph_of(BROKEN)
    groups = StageMembers(graph).slot_sharing_groups()
    names = [[graph.execution_vertex(vertex).task_name for vertex in group] for group in groups]
    assert names == [
        ["Source: Source (1/2)", "Map (1/2)"],
        ["Source: Source (2/2)", "Map (2/2)"],
        ["Sink: Reduce (1/1)"],
    ]


def test_a_job_that_was_not_planned_for_spark_is_a_mistake_of_the_caller():
    environment = StreamExecutionEnvironment("job", RuntimeExecutionMode.BATCH, 1)
    environment.add_operator(SinkTransformation(SourceTransformation("Source"), "Sink"))
    graph = ExecutionGraph(create_job_graph(environment.get_stream_graph()))
    with pytest.raises(InvariantViolatedError, match="no stage handle"):
        StageMembers(graph)


def test_one_stage_is_submitted_and_all_its_vertices_follow_its_tasks():
    spark = FakeSpark(BROKEN)
    assert spark.running() == ["Map"]
    spark.job_started("Map")
    first = spark.launch("Map", 0)
    assert (spark.state("Source"), spark.state("Map")) == (["RUNNING", "SCHEDULED"], ["RUNNING", "SCHEDULED"])
    second = spark.launch("Map", 1)
    spark.end(first)
    assert (spark.state("Source"), spark.state("Map")) == (["FINISHED", "RUNNING"], ["FINISHED", "RUNNING"])
    spark.end(second)
    spark.conclude("Map")
    assert (spark.state("Source"), spark.state("Map")) == (["FINISHED"] * 2, ["FINISHED"] * 2)
    spark.run("Reduce")
    assert spark.scheduler.job_status is JobStatus.FINISHED


def test_a_failed_task_fails_the_vertex_and_cancels_those_that_ran_within_it():
    spark = FakeSpark(BROKEN)
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition) for partition in range(2)]
    spark.end(tasks[0])
    spark.end(tasks[1], "FAILED")
    spark.conclude("Map", error=RuntimeError("stage failed"))
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert spark.state("Map") == ["FINISHED", "FAILED"]
    assert spark.state("Source") == ["FINISHED", "CANCELED"]


def test_both_vertices_are_restarted_together():
    spark = FakeSpark(BROKEN, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 10.0))
    spark.job_started("Map")
    tasks = [spark.launch("Map", partition) for partition in range(2)]
    spark.end(tasks[0])
    spark.end(tasks[1], "FAILED")
    spark.conclude("Map", error=RuntimeError("stage failed"))
    spark.pass_time(20)
    assert (spark.state("Source"), spark.state("Map")) == (["FINISHED", "SCHEDULED"], ["FINISHED", "SCHEDULED"])
    spark.job_started("Map")
    spark.end(spark.launch("Map", 1))
    spark.conclude("Map")
    assert (spark.state("Source"), spark.state("Map")) == (["FINISHED"] * 2, ["FINISHED"] * 2)
    vertex = spark.graph.execution_vertex(spark.by_name["Source"].first + 1)
    assert [each.state for each in vertex.prior_executions] == [ExecutionState.CANCELED]


def test_cancelling_ends_the_one_stage_and_cancels_all_its_vertices():
    spark = FakeSpark(BROKEN)
    spark.job_started("Map")
    task = spark.launch("Map", 0)
    spark.main_thread.execute(spark.scheduler.cancel)
    spark.settle()
    assert spark.stage("Map").is_cancelled
    assert spark.state("Source")[0] == "CANCELING"
    spark.end(task, "KILLED")
    spark.conclude("Map", error=RuntimeError("cancelled"))
    assert (spark.state("Source"), spark.state("Map")) == (["CANCELED"] * 2, ["CANCELED"] * 2)
    assert spark.scheduler.job_status is JobStatus.CANCELED
