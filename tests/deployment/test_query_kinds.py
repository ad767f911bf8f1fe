"""Every kind of stage gives the rows of a plain run, and Spark runs none of them twice."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.deployment.stages import spark_jobs
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.jvm.java import items
from flinkmagic.planning.stage_handles import BroadcastStageHandle, ResultStageHandle, SubqueryStageHandle
from flinkmagic.scheduling.job_status import JobStatus


@pytest.fixture
def kinds(spark, numbers):
    rows = spark.read.parquet(numbers)
    small = spark.range(5).selectExpr("id AS k", "id * 10 AS ten")
    rows.createOrReplaceTempView("rows")
    small.createOrReplaceTempView("small")
    cached = rows.where("k < 3").cache()
    filled = rows.where("k < 2").cache()
    assert filled.count() > 0
    plus_one = F.udf(lambda value: value + 1, "long")
    twice = F.pandas_udf(lambda values: values * 2, "long")
    named = {
        "broadcast_join": rows.join(F.broadcast(small), "k"),
        "sort_merge_join": rows.hint("merge").join(small, "k", "left"),
        "cartesian": rows.where("id < 20").crossJoin(small),
        "rollup": rows.rollup("k", "m").agg(F.sum("id").alias("s")),
        "distinct": rows.select("m").distinct(),
        "window": rows.withColumn("r", F.rank().over(Window.partitionBy("k").orderBy("m", "id"))),
        "sorted": rows.orderBy(F.desc("m"), "id"),
        "limit": rows.orderBy("id").limit(17),
        "tail_limit": rows.groupBy("k").count().limit(3).groupBy().count(),
        "union": rows.select("id").union(small.select("ten")),
        "except": rows.select("k").exceptAll(small.select("k")),
        "scalar_subquery": spark.sql("SELECT id FROM rows WHERE m > (SELECT avg(ten) FROM small)"),
        "in_subquery": spark.sql("SELECT id, k FROM rows WHERE k IN (SELECT k FROM small WHERE ten > 10)"),
        "exists": spark.sql("SELECT id FROM rows r WHERE EXISTS (SELECT 1 FROM small s WHERE s.k = r.k AND ten < m)"),
        "udf": rows.select("id", plus_one("m").alias("m")).groupBy("m").count(),
        "pandas_udf": rows.select("id", twice("m").alias("m")).groupBy("m").count(),
        "grouped_map": rows.groupBy("k").applyInPandas(lambda pdf: pdf.head(1), rows.schema),
        "round_robin": rows.repartition(3).selectExpr("sum(id)"),
        "by_range": rows.repartitionByRange(3, "m").groupBy("k").count(),
        "coalesce": rows.coalesce(2).selectExpr("id + 1 AS next"),
        "cached": cached.groupBy("k").count(),
        "cached and filled": filled.groupBy("k").count(),
        "explode": rows.where("id < 5").select("id", F.explode(F.array("k", "m")).alias("e")),
        "empty": rows.where("id < 0").groupBy("k").count(),
        "literal": spark.sql("SELECT 1 AS one"),
        "two_names": rows.join(small, rows.k == small.k).limit(0),
    }
    yield named
    cached.unpersist()
    filled.unpersist()


@pytest.mark.long
@pytest.mark.parametrize(
    "parallelism", [pytest.param(3, marks=pytest.mark.exhaustive), None], ids=["three subtasks", "as many as needed"]
)
def test_all_kinds_give_the_rows_of_a_plain_run(kinds, deploy, spark_work, ran_once, parallelism):
    before = spark_work.jobs()
    deployment = deploy(kinds, parallelism=parallelism)
    assert deployment.wait(200) is JobStatus.FINISHED, deployment.exceptions()
    ran = spark_work.tasks_by_stage(before)
    ran_once(deployment.tasks(), ran)
    graph = deployment.execution_graph
    assert all(graph.state_of(index) is ExecutionState.FINISHED for index in range(graph.n_vertices))
    for name, frame in kinds.items():
        result = deployment.result(name)
        rows, plain = result.collect(), frame.collect()
        if name not in ("sorted", "limit"):
            rows, plain = sorted(rows, key=str), sorted(plain, key=str)
        if name == "tail_limit":
            assert [row[0] for row in rows] == [3]
        else:
            assert rows == plain, name
        assert result.schema == frame.schema, name


def test_what_goes_to_the_driver_is_told_in_bytes_and_its_rows_are_unknown(spark, deploy, numbers):
    spark.read.parquet(numbers).createOrReplaceTempView("rows")
    frame = spark.sql("SELECT /*+ BROADCAST(s) */ r.id FROM rows r JOIN range(5) s ON r.k = s.id "
                      "WHERE m > (SELECT avg(m) FROM rows)")  # fmt: skip
    deployment = deploy({"rows": frame})
    assert deployment.wait(60) is JobStatus.FINISHED
    kinds = set()
    for vertex in deployment.execution_graph.job_vertices:
        handle = vertex.job_vertex.operator_factory
        own = [task for task in deployment.tasks() if task.vertex_id == vertex.id and task.role == "task"]
        if isinstance(handle, BroadcastStageHandle | SubqueryStageHandle | ResultStageHandle):
            kinds.add(type(handle))
            assert {task.rows_out for task in own} == {None}
            if isinstance(handle, ResultStageHandle):
                assert {task.bytes_out for task in own} == {None}
            else:
                assert all(task.bytes_out > 0 for task in own)
    assert kinds == {BroadcastStageHandle, SubqueryStageHandle, ResultStageHandle}


def test_the_sql_tab_shows_writes_and_results(spark, deploy, numbers, tmp_path):
    store = spark._jsparkSession.sharedState().statusStore()
    before = max((one.executionId() for one in items(store.executionsList())), default=-1)
    with capture(spark) as program:
        spark.read.parquet(numbers).groupBy("k").count().write.parquet(str(tmp_path / "out"))
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    [last] = [one for one in items(store.executionsList()) if one.executionId() > before]
    assert last.description() == f"job: {deployment.execution_graph.job_vertices[-1].name}"
    assert last.completionTime().isDefined()
    writing = max(map(int, last.stages().mkString(" ").split()))
    stage = spark.sparkContext._jsc.sc().statusStore().lastStageAttempt(writing)
    assert stage.name() == stage.details() == last.description()


@pytest.mark.parametrize("users_pool", [None, "mine"])
def test_a_fair_session_gets_a_pool_unless_the_user_chose_one(spark, deploy, monkeypatch, users_pool):
    sc = spark.sparkContext
    monkeypatch.setattr(spark_jobs, "is_fair", lambda sc: True)
    seen = []
    enter = spark_jobs.JobProperties.enter

    def watch(self, *stage):
        enter(self, *stage)
        seen.append((sc.getLocalProperty("spark.scheduler.pool"), threading.current_thread().name))

    monkeypatch.setattr(spark_jobs.JobProperties, "enter", watch)
    sc.setLocalProperty("spark.scheduler.pool", users_pool)
    sc.addJobTag("users-tag")
    try:
        deployment = deploy({"rows": spark.range(3)})
        assert deployment.wait(60) is JobStatus.FINISHED
        assert sc.getLocalProperty("spark.scheduler.pool") == users_pool
    finally:
        sc.setLocalProperty("spark.scheduler.pool", None)
        sc.clearJobTags()
    ((pool, thread),) = seen
    assert pool == users_pool if users_pool else pool.startswith("flinkmagic-")
    assert thread.startswith("flinkmagic-")


def test_the_users_tags_are_on_the_jobs_too(spark, deploy, spark_work):
    """So that cancelling by a tag of the user's reaches them."""
    sc = spark.sparkContext
    sc.addJobTag("users-tag")
    before = spark_work.jobs()
    try:
        assert deploy({"rows": spark.range(3)}).wait(60) is JobStatus.FINISHED
    finally:
        sc.clearJobTags()
    tagged = set(sc._jsc.sc().statusTracker().getJobIdsForTag("users-tag"))
    assert {job.jobId() for job in spark_work.since(before)} <= tagged
