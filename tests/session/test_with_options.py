"""Jobs whose operators the user marked: run on Spark, simulated, and drawn."""

from __future__ import annotations

from html import escape

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import flinkmagic
from flinkmagic import with_options
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import simulate_graph


@pytest.fixture
def documented(spark):
    """The job of Flink's page on job scheduling: source and map with parallelism 4, reduce with 3."""
    with flinkmagic.capture(spark) as program:
        source = with_options(spark.range(0, 1000, 1, 4), name="Source", slot_sharing_group="pipeline")
        mapped = with_options(source.select((F.col("id") % 7).alias("key"), "id"), name="Map", chaining="head")
        reduced = with_options(mapped.groupBy("key").agg(F.sum("id").alias("total")), name="Reduce")
    graph = flinkmagic.compile(program, name="documented", parallelism=3)
    return graph, reduced


def test_it_runs_as_two_spark_stages_and_three_job_vertices(documented):
    graph, reduced = documented
    job = graph.run()
    assert job.status is JobStatus.FINISHED
    assert sorted(job.result("reduced").collect()) == sorted(reduced.collect())
    states = {vertex.name: {each.name for each in vertex_states(job, vertex)} for vertex in vertices(job)}
    assert states == {
        "Source: Source": {"FINISHED"},
        "Map -> HashAggregate": {"FINISHED"},
        "Reduce -> Sink: reduced": {"FINISHED"},
    }
    # Spark ran a task for each map with its source, and one for each reduce.
    assert len([task for task in job.tasks() if task.role == "task"]) == 4 + 3
    source, mapped = vertices(job)[:2]
    for subtask in range(4):
        one = job.execution_graph.execution_vertex(source.first + subtask).current_execution
        other = job.execution_graph.execution_vertex(mapped.first + subtask).current_execution
        assert one.slot == other.slot
        assert one.resource_id == other.resource_id == "driver"


def vertices(job):
    return job.execution_graph.job_vertices


def vertex_states(job, vertex):
    return [job.execution_graph.state_of(index) for index in vertex.vertices]


def test_two_task_managers_of_three_slots_are_drawn_as_in_the_documentation(documented):
    graph, _ = documented
    simulated = simulate_graph(graph, task_managers=2, slots=3)
    assert simulated.timeline.slots == tuple((f"tm-{manager}", slot) for manager in (1, 2) for slot in range(3))

    def slots_of(name):
        spans = [span for span in simulated.timeline.spans if span.task_name.startswith(name)]
        return {(span.resource_id, span.slot) for span in spans}

    with_source, with_map, with_reduce = slots_of("Source: Source"), slots_of("Map"), slots_of("Reduce")
    assert with_source == with_map
    assert len(with_source) == 4
    assert len(with_reduce) == 3
    assert with_reduce < with_source
    for words in ("Source: Source (1/4)", "Map -> HashAggregate (4/4)", "Reduce -> Sink: reduced (3/3)"):
        assert escape(words) in simulated.svg


def test_pictures_show_the_names(documented):
    graph, _ = documented
    assert [node.title for node in graph.view("job").nodes] == ["Source", "Map", "Reduce"]
    assert ">Map<" in graph.to_svg()


def test_a_failure_in_a_broken_chain_ends_all_of_it(spark):
    def fail(number):
        raise ValueError(f"no {number}")

    with flinkmagic.capture(spark) as program:
        numbers = with_options(spark.range(0, 8, 1, 2), chaining="never", name="Numbers")
        failed = numbers.select(F.udf(fail, LongType())("id"))
    del failed
    job = flinkmagic.compile(program, name="broken", parallelism=2).run()
    assert job.status is JobStatus.FAILED
    (entry,) = job.exceptions()
    assert "no " in str(entry.root.error)
    source, sink = vertices(job)
    assert ExecutionState.FAILED in vertex_states(job, sink)
    assert set(vertex_states(job, source)) == {ExecutionState.CANCELED}
