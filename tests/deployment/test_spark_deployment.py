"""A planned job runs as Spark stages, once each, and says truly what became of its tasks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.session_snapshot import read_conf
from flinkmagic.deployment import SparkDeployment
from flinkmagic.deployment.board.rules import NO_TASK
from flinkmagic.errors.deployment import ResultReleasedError
from flinkmagic.errors.usage import UnknownNameError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.planning.stage_handles import QueryStageHandle
from flinkmagic.scheduling.job_status import JobStatus


def joined(spark, numbers):
    names = spark.range(7).selectExpr("id AS k", "concat('n', id) AS name")
    return spark.read.parquet(numbers).where("id > 10").join(names, "k")


@pytest.fixture
def two_sinks(spark, numbers, tmp_path):
    """Scan, join, aggregate, two parquet sinks; and the DataFrames that were written."""
    both = joined(spark, numbers)
    by_name = both.groupBy("name").agg(F.count("*").alias("n"), F.avg("m").alias("mean"))
    by_m = both.groupBy("m").count().orderBy("m")
    with capture(spark) as program:
        by_name.write.mode("overwrite").parquet(str(tmp_path / "by_name"))
        by_m.write.mode("overwrite").parquet(str(tmp_path / "by_m"))
    return program, by_name, by_m


def test_writes_what_a_plain_run_writes(spark, deploy, two_sinks, tmp_path):
    program, by_name, by_m = two_sinks
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED
    written = spark.read.parquet(str(tmp_path / "by_name"))
    assert sorted(written.collect()) == sorted(by_name.collect())
    assert [(f.name, f.dataType) for f in written.schema] == [(f.name, f.dataType) for f in by_name.schema]
    assert sorted(spark.read.parquet(str(tmp_path / "by_m")).collect()) == by_m.collect()
    assert (tmp_path / "by_m" / "_SUCCESS").exists()
    assert [sink.name for sink in deployment.finished_sinks()] == [write.name for write in program.writes]
    assert deployment.exceptions() == ()


def test_each_stage_runs_once(deploy, two_sinks, spark_work):
    before = spark_work.jobs()
    deployment = deploy(two_sinks[0])
    assert deployment.wait(60) is JobStatus.FINISHED
    ran = spark_work.tasks_by_stage(before)
    graph = deployment.execution_graph
    tasks = deployment.tasks()
    own = [task for task in tasks if task.role == "task"]
    sampling = [task for task in tasks if task.role == "helper"]
    assert sum(ran.values()) == len(tasks)
    assert len(own) == graph.n_vertices
    assert {(task.vertex_id, task.subtask) for task in own} == {
        (vertex.id, subtask) for vertex in graph.job_vertices for subtask in range(vertex.parallelism)
    }
    # The sort's range exchange samples what it reads, as in a plain run; nothing else runs beside the vertices.
    assert {task.vertex_id for task in sampling} <= {
        vertex.id for vertex in graph.job_vertices if vertex.job_vertex.operator_factory.starts_jobs_early
    }
    assert len({task.stage for task in own}) == len(graph.job_vertices)


def test_a_shared_exchange_runs_once(spark, deploy, numbers, spark_work, tmp_path):
    def grouped():
        """Two DataFrames with one plan: what they have in common is an exchange, no DataFrame of the user's."""
        return spark.read.parquet(numbers).groupBy("k").agg(F.sum("m").alias("total"))

    with capture(spark) as program:
        grouped().where("total > 0").write.json(str(tmp_path / "a"))
        grouped().selectExpr("total + 1 AS more").write.csv(str(tmp_path / "b"))
    before = spark_work.jobs()
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED
    assert len(deployment.execution_graph.job_vertices) == 3
    ran = spark_work.tasks_by_stage(before)
    assert sorted(ran.values()) == sorted(vertex.parallelism for vertex in deployment.execution_graph.job_vertices)


def test_states_follow_the_tasks(deploy, two_sinks):
    deployment = deploy(two_sinks[0])
    assert deployment.wait(60) is JobStatus.FINISHED
    graph = deployment.execution_graph
    for index in range(graph.n_vertices):
        execution = graph.execution_vertex(index).current_execution
        course = [ExecutionState.CREATED, ExecutionState.SCHEDULED, ExecutionState.DEPLOYING]
        course += [ExecutionState.INITIALIZING, ExecutionState.RUNNING, ExecutionState.FINISHED]
        assert list(execution.timestamps) == course or sorted(execution.timestamps, key=lambda s: s.value) == course
        times = [execution.timestamps[state] for state in course]
        assert times == sorted(times)
        assert execution.resource_id == "driver"
    info = deployment.snapshot()
    assert info.job.job_status is JobStatus.FINISHED
    assert (info.slots_used, info.slots_total) == (0, 2)


def test_records_say_what_tasks_read_and_wrote(deploy, two_sinks):
    deployment = deploy(two_sinks[0])
    assert deployment.wait(60) is JobStatus.FINISHED
    graph, tasks = deployment.execution_graph, deployment.tasks()
    assert all(task.state is ExecutionState.FINISHED and task.end_ms >= task.start_ms for task in tasks)
    assert {task.slot for task in tasks} <= {"driver_0", "driver_1"}
    for vertex in graph.job_vertices:
        own = [task for task in tasks if task.vertex_id == vertex.id and task.role == "task"]
        if vertex.name.endswith("by_name"):
            assert sum(task.rows_out for task in own) == 7
            assert sum(task.bytes_out for task in own) > 0
        if "parquet numbers" in vertex.name:
            assert sum(task.rows_in for task in own) == 2000


def test_a_result_is_a_dataframe_of_the_users_session(spark, deploy, numbers, spark_work):
    top = spark.read.parquet(numbers).groupBy("k").agg(F.sum("m").alias("total")).orderBy("k")
    deployment = deploy({"top": top})
    assert deployment.wait(60) is JobStatus.FINISHED
    result = deployment.result("top")
    before = spark_work.jobs()
    assert result.collect() == top.collect()
    assert result.schema == top.schema
    assert result.sparkSession is spark
    assert deployment.result("top") is result
    assert result.is_cached
    read = deployment.result("top").groupBy().count().collect()
    assert read[0][0] == 7
    again = spark_work.tasks_by_stage(before)
    assert max(again.values()) <= 4  # nothing of the plain plan's scan but that of top.collect() itself
    with pytest.raises(UnknownNameError, match=r"no result named 'nothing'\. There are: top"):
        deployment.result("nothing")


def test_an_equal_query_is_not_served_from_a_kept_result(spark, deploy, tmp_path):
    path = str(tmp_path / "grows")
    spark.range(5).write.parquet(path)
    deployment = deploy({"rows": spark.read.parquet(path).groupBy().count()})
    assert deployment.wait(60) is JobStatus.FINISHED
    spark.range(3).write.mode("append").parquet(path)
    assert spark.read.parquet(path).groupBy().count().collect()[0][0] == 8
    assert deployment.result("rows").collect()[0][0] == 5


def test_released_results_are_gone(spark, deploy):
    deployment = deploy({"rows": spark.range(5)})
    assert deployment.wait(60) is JobStatus.FINISHED
    rows = deployment.result("rows")
    cache = spark._jsparkSession.sharedState().cacheManager()
    assert cache.lookupCachedData(rows._jdf).isDefined()
    deployment.release()
    assert cache.lookupCachedData(rows._jdf).isEmpty()
    with pytest.raises(ResultReleasedError):
        deployment.result("rows")


def test_an_input_without_partitions_ends_finished(spark, deploy):
    empty = spark.createDataFrame(spark.sparkContext.emptyRDD(), "k long, v long")
    deployment = deploy({"sums": empty.groupBy("k").agg(F.sum("v").alias("s"))})
    assert deployment.wait(60) is JobStatus.FINISHED
    assert deployment.result("sums").collect() == []
    graph = deployment.execution_graph
    first = graph.execution_vertex(0).current_execution
    assert (first.state, first.resource_id) == (ExecutionState.FINISHED, NO_TASK)
    assert not [task for task in deployment.tasks() if task.vertex_id == graph.job_vertices[0].id]


@dataclass(eq=False, kw_only=True)
class CountStageHandle(QueryStageHandle):
    """A kind that no other module knows."""

    kind = "result"
    counted: int = -1

    def run(self, host, ready):
        ready()
        self.counted = self.make().execute().count()


def test_a_kind_of_handle_is_one_class(spark):
    planned = plan({"rows": spark.range(0, 7, 1, 2)}, JobOptions(parallelism=2))
    job_graph = create_job_graph(planned.environment.get_stream_graph())
    (vertex,) = job_graph.vertices.values()
    result = vertex.operator_factory
    handle = CountStageHandle(name="count", tasks=2, made=result.made, query_execution=result.query_execution)
    vertex.operators[0].operator_factory = handle
    deployment = SparkDeployment(planned, ExecutionGraph(job_graph), spark=spark)
    deployment.start()
    assert deployment.wait(60) is JobStatus.FINISHED
    assert handle.counted == 7
    ran = [(task.vertex_id, task.role, task.state) for task in deployment.tasks()]
    assert ran == [(vertex.id, "task", ExecutionState.FINISHED)] * 2
    deployment.release()


def test_finished_outputs_are_skipped_when_the_same_plan_runs_again(spark, numbers):
    frame = spark.read.parquet(numbers).groupBy("k").count()
    planned = plan({"counts": frame}, JobOptions(parallelism=3))
    job_graph = create_job_graph(planned.environment.get_stream_graph())
    first = SparkDeployment(planned, ExecutionGraph(job_graph), spark=spark)
    first.start()
    assert first.wait(60) is JobStatus.FINISHED
    again = SparkDeployment(planned, ExecutionGraph(job_graph), spark=spark)
    again.start()
    assert again.wait(60) is JobStatus.FINISHED
    assert sorted(again.result("counts").collect()) == sorted(first.result("counts").collect())
    mapped, reduced = again.execution_graph.job_vertices
    assert {task.vertex_id for task in again.tasks()} == {reduced.id}
    for index in mapped.vertices:
        execution = again.execution_graph.execution_vertex(index).current_execution
        assert (execution.state, execution.resource_id) == (ExecutionState.FINISHED, NO_TASK)
    assert again.partition_bytes() == first.partition_bytes()
    first.release()
    again.release()


def test_the_session_is_as_it_was(spark, deploy, two_sinks):
    sc = spark.sparkContext
    bus = sc._jsc.sc().listenerBus()
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    sc.setJobGroup("mine", "my group")
    sc.setLocalProperty("my.property", "kept")
    sc.addJobTag("my-tag")
    users = spark.range(3).cache()
    try:
        conf = read_conf(spark._jsparkSession)
        properties = dict(sc._jsc.sc().getLocalProperties())
        assert users.count() == 3
        # What other tests have left may go meanwhile: listeners of their jobs and of sessions that are collected as
        # garbage, and rows.
        listeners, rdds = list(bus.listeners()), set(sc._jsc.getPersistentRDDs().keySet())
        go = ("flinkmagic", "org.apache.spark.sql.util.ExecutionListenerBus")
        others = [one for one in listeners if not one.getClass().getName().startswith(go)]
        assert others
        assert deploy(two_sinks[0]).wait(60) is JobStatus.FINISHED
        assert read_conf(spark._jsparkSession) == conf
        assert dict(sc._jsc.sc().getLocalProperties()) == properties
        assert [one for one in bus.listeners() if one not in listeners] == []
        assert [one for one in others if not bus.listeners().contains(one)] == []
        assert set(sc._jsc.getPersistentRDDs().keySet()) <= rdds
        assert users.storageLevel.useMemory
        cached = spark._jsparkSession.sharedState().cacheManager().lookupCachedData(users._jdf).get()
        assert cached.cachedRepresentation().cacheBuilder().isCachedColumnBuffersLoaded()
    finally:
        users.unpersist()
        spark.conf.unset("spark.sql.session.timeZone")
        sc.clearJobTags()
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", "my.property"):
            sc.setLocalProperty(name, None)


def test_tasks_see_the_configuration_of_the_session(spark, deploy):
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = spark.sql("SELECT date_format(timestamp_seconds(id * 0), 'HH') AS hour FROM range(4)").distinct()
        deployment = deploy({"hours": frame})
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert deployment.wait(60) is JobStatus.FINISHED
    assert [row.hour for row in deployment.result("hours").collect()] == ["09"]


def test_jobs_carry_names_for_sparks_ui(spark, deploy, two_sinks, spark_work):
    before = spark_work.jobs()
    deployment = deploy(two_sinks[0])
    assert deployment.wait(60) is JobStatus.FINISHED
    new = spark_work.since(before)
    names = {f"job: {vertex.name}" for vertex in deployment.execution_graph.job_vertices}
    assert {job.description().get() for job in new if job.description().isDefined()} <= names
    assert len({job.jobGroup().get() for job in new}) == 1
