"""What is decided when a stage is about to run: joins that hash a small side, tasks that read several partitions."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.adaptive_stages import StageAdaptation
from flinkmagic.scheduling.job_status import JobStatus

JOINS = {
    "inner": "SELECT l.id, r.m FROM large l JOIN few r ON l.id = r.id",
    "inner_turned": "SELECT l.id, r.m FROM few r JOIN large l ON l.id = r.id",
    "left": "SELECT l.id, r.m FROM large l LEFT JOIN few r ON l.id = r.id",
    "right": "SELECT l.id, r.m FROM few r RIGHT JOIN large l ON l.id = r.id",
    "semi": "SELECT l.id FROM large l LEFT SEMI JOIN few r ON l.id = r.id AND r.m < l.m + 50",
    "anti": "SELECT l.id FROM large l LEFT ANTI JOIN few r ON l.id = r.id",
    "exists_or": "SELECT l.id FROM large l WHERE l.m = 3 OR EXISTS (SELECT 1 FROM few r WHERE r.id = l.id)",
}
SIDES = {"inner_turned": "left", "right": "left"}


@pytest.fixture
def views(spark, numbers):
    """`few` holds 20 rows, which is not known before its filter has run, and Spark must not broadcast by estimate."""
    rows = spark.read.parquet(numbers)
    rows.createOrReplaceTempView("large")
    rows.where("cast(cast(m AS string) AS int) = 7").createOrReplaceTempView("few")
    # Between the real size of few and what Spark estimates of either side.
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "2000")
    yield spark
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def joins_of(deployment):
    return [choice for how in deployment.adaptations().values() for choice in how.joins]


def rows_of(deployment, name):
    return sorted(map(tuple, deployment.result(name).collect()), key=repr)


@pytest.mark.matrix(4)
@pytest.mark.parametrize("kind", JOINS)
def test_a_join_hashes_the_side_that_turned_out_small(kind, views, deploy):
    query = views.sql(JOINS[kind])
    counted = query.groupBy((F.col("id") % 5).alias("g")).count()
    deployment = deploy({"rows": query, "counted": counted}, parallelism=4)
    assert deployment.wait(120) is JobStatus.FINISHED, deployment.exceptions()
    assert rows_of(deployment, "rows") == sorted(map(tuple, query.collect()), key=repr)
    assert rows_of(deployment, "counted") == sorted(map(tuple, counted.collect()), key=repr)
    chosen = joins_of(deployment)
    assert chosen, deployment.adaptations()
    assert {(choice.planned, choice.side) for choice in chosen} == {("SortMergeJoin", SIDES.get(kind, "right"))}
    assert {choice.bytes for choice in chosen} <= {20 * 24, 20 * 16}
    told = [event.text for event in deployment.scheduler.event_log.events() if event.source == "stages"]
    assert len(told) == len(chosen)
    assert "run as ShuffledHashJoin" in told[0]


def test_what_ran_is_a_hash_join_over_unsorted_rows(views, deploy):
    deployment = deploy({"rows": views.sql(JOINS["inner"])}, parallelism=4)
    assert deployment.wait(120) is JobStatus.FINISHED, deployment.exceptions()
    plan = deployment._vertices[0].job_vertex.operator_factory.make()
    assert "ShuffledHashJoin" in plan.toString()
    assert "Sort" not in plan.toString()


NOT_CHOSEN = {
    "a hint": "SELECT /*+ MERGE(r) */ l.id, r.m FROM large l JOIN few r ON l.id = r.id",
    "both sides large": "SELECT l.id, r.m FROM large l JOIN large r ON l.id = r.id",
    "left, all of the small side is kept": "SELECT r.id, l.m FROM few r LEFT JOIN large l ON l.id = r.id",
    "right, all of the small side is kept": "SELECT l.id, r.m FROM large l RIGHT JOIN few r ON l.id = r.id",
    "full": "SELECT l.id, r.m FROM large l FULL JOIN few r ON l.id = r.id",
    "semi, small on the left": "SELECT r.id FROM few r LEFT SEMI JOIN large l ON l.id = r.id",
    "a window over the same order": (
        "SELECT id, m, count(*) OVER (PARTITION BY id) AS n FROM "
        "(SELECT l.id, r.m FROM large l JOIN few r ON l.id = r.id)"
    ),
    "a second join in the same order": (
        "SELECT a.id FROM (SELECT l.id FROM large l JOIN few r ON l.id = r.id) a JOIN large b ON a.id = b.id"
    ),
    "columns whose size is not known": (
        "SELECT l.id, r.s FROM large l JOIN "
        "(SELECT id, repeat('x', count(*)) AS s FROM few GROUP BY id) r ON l.id = r.id"
    ),
    "rows sorted for the user": "SELECT l.id, r.m FROM large l JOIN few r ON l.id = r.id SORT BY l.id",
    "a list in the order of the rows": (
        "SELECT m, collect_list(id) AS ids FROM "
        "(SELECT l.id, r.m FROM large l JOIN few r ON l.id = r.id SORT BY l.id) GROUP BY m"
    ),
}


@pytest.mark.matrix(4)
@pytest.mark.parametrize("why", NOT_CHOSEN)
def test_a_join_stays_as_planned_where_hashing_is_not_asked_for_or_its_order_is_needed(why, views, deploy):
    query = views.sql(NOT_CHOSEN[why])
    deployment = deploy({"rows": query}, parallelism=4)
    assert deployment.wait(120) is JobStatus.FINISHED, deployment.exceptions()
    if "list" not in why:
        assert rows_of(deployment, "rows") == sorted(map(tuple, query.collect()), key=repr)
    assert joins_of(deployment) == []


def test_rows_sorted_within_partitions_stay_so_although_the_join_gave_their_order(views, deploy):
    """Spark takes such a sort away; the join that makes it superfluous must then remain what it is."""
    sorted_rows = views.sql(NOT_CHOSEN["rows sorted for the user"])
    deployment = deploy({"rows": sorted_rows}, parallelism=4)
    assert deployment.wait(120) is JobStatus.FINISHED
    for part in deployment.result("rows").rdd.glom().collect():
        assert [row.id for row in part] == sorted(row.id for row in part)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.autoBroadcastJoinThreshold", "-1"),
        ("spark.sql.adaptive.autoBroadcastJoinThreshold", "10"),
        ("spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold", "10"),
    ],
)
def test_the_users_configuration_decides_about_joins(key, value, views, deploy):
    before = views.conf.get(key, None)
    views.conf.set(key, value)
    try:
        deployment = deploy({"rows": views.sql(JOINS["inner"])}, parallelism=4)
        assert deployment.wait(120) is JobStatus.FINISHED
    finally:
        views.conf.unset(key) if before is None else views.conf.set(key, before)
    assert joins_of(deployment) == []


@pytest.mark.long
def test_a_threshold_that_was_raised_for_broadcasts_lets_no_task_hash_more_than_is_wise(views, deploy):
    """Spark's broadcast takes memory once; a hashed partition does for each task that runs, and cannot spill."""
    views.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    views.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "1g")
    try:
        sides = [views.range(0, 800_000, 1, 2).selectExpr(f"id * {factor} AS id") for factor in (2, 3)]
        found = {}
        for parallelism in (1, 4):
            deployment = deploy({"rows": sides[0].join(sides[1], "id").groupBy().count()}, parallelism=parallelism)
            assert deployment.wait(120) is JobStatus.FINISHED, deployment.exceptions()
            assert rows_of(deployment, "rows") == [(266_667,)]
            found[parallelism] = [choice.bytes for choice in joins_of(deployment)]
    finally:
        views.conf.unset("spark.sql.adaptive.autoBroadcastJoinThreshold")
    assert found == {1: [], 4: [800_000 * 16]}


@pytest.mark.long
def test_strings_that_a_collation_takes_for_equal_are_joined(views, deploy):
    """Spark hashes what it makes of them for the collation, not their bytes."""
    if views.version.startswith("3."):
        pytest.skip("collations came with Spark 4")
    query = views.sql(
        "SELECT l.id, r.id AS other FROM (SELECT id, concat('A', m) COLLATE UTF8_LCASE AS s FROM large) l "
        "JOIN (SELECT id, concat('a', m) COLLATE UTF8_LCASE AS s FROM few) r ON l.s = r.s"
    )
    assert query.count() == 400
    deployment = deploy({"rows": query}, parallelism=4)
    assert deployment.wait(120) is JobStatus.FINISHED, deployment.exceptions()
    assert rows_of(deployment, "rows") == sorted(map(tuple, query.collect()), key=repr)


# -- partitions that are read together ----------------------------------------------------------------------------


def tasks_by_vertex(deployment):
    """By the name of each vertex its subtasks and the tasks that did their work."""
    launched = {}
    for task in deployment.tasks():
        if task.role == "task":
            launched.setdefault(task.vertex_id, set()).add(task.subtask)
    return {v.name: (v.parallelism, len(launched.get(v.id, ()))) for v in deployment.execution_graph.job_vertices}


def test_one_task_reads_partitions_that_turned_out_small(spark, numbers, deploy, tmp_path):
    rows = spark.read.parquet(numbers)
    counts = rows.groupBy("k").count().orderBy("k")
    with capture(spark) as program:
        counts.write.parquet(str(tmp_path / "out"))
    deployment = deploy(program, parallelism=None)
    assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    width = tasks_by_vertex(deployment)
    assert [tasks for name, (_, tasks) in width.items() if "Source" not in name] == [1, 1]
    assert [parallelism for name, (parallelism, _) in width.items() if "Source" not in name] == [4, 4]
    graph = deployment.execution_graph
    assert all(graph.state_of(index) is ExecutionState.FINISHED for index in range(graph.n_vertices))
    assert len(list((tmp_path / "out").glob("part-*"))) == 1
    assert [tuple(row) for row in spark.read.parquet(str(tmp_path / "out")).collect()] == [
        tuple(row) for row in counts.collect()
    ]
    merged = [how.tasks for how in deployment.adaptations().values()]
    assert merged == [1, 1]


def test_a_write_straight_over_a_shuffle_knows_its_tasks(spark, numbers, deploy, tmp_path):
    """What they did decides whether the write may be repeated after a failure."""
    with capture(spark) as program:
        spark.read.parquet(numbers).repartition("k").write.mode("append").parquet(str(tmp_path / "out"))
    deployment = deploy(program, parallelism=None)
    assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    assert [(task.role, task.subtask) for task in deployment.tasks()][-1] == ("task", 0)
    (sink,) = deployment._vertices
    assert tasks_by_vertex(deployment)[sink.name] == (4, 1)
    assert deployment.adaptations()[sink.id].tasks == 1
    earlier = deployment._drive.state.earlier[sink.index]
    assert (earlier.launched, earlier.reached_commit) == (True, True)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 2000


def test_rows_kept_straight_over_a_shuffle_know_their_tasks(spark, numbers, deploy):
    deployment = deploy({"rows": spark.read.parquet(numbers).repartition("k")}, parallelism=None)
    assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    assert [task.role for task in deployment.tasks()] == ["task"] * len(deployment.tasks())
    assert len(rows_of(deployment, "rows")) == 2000


def test_neighbours_are_merged_up_to_the_size_that_the_user_sets(spark, numbers, deploy):
    spark.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", "13000b")
    try:
        sorted_rows = spark.read.parquet(numbers).select("id", "m").orderBy("id")
        deployment = deploy({"rows": sorted_rows}, parallelism=None)
        assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.minPartitionSize")
    (how,) = deployment.adaptations().values()
    # Of four partitions of 4.4 to 5.3 kB, whose borders are drawn by a sample, two go together and three do not.
    assert how.tasks == 2
    assert [row.id for row in deployment.result("rows").collect()] == list(range(2000))


def test_partitions_stay_apart_where_the_user_or_the_plan_says_how_many_there_are(spark, numbers, deploy):
    rows = spark.read.parquet(numbers)
    counts = rows.groupBy("k").count()
    for program, parallelism in (
        ({"rows": counts}, 3),
        ({"rows": rows.repartition(5, "k")}, None),
        ({"rows": counts.union(counts.withColumn("k", F.col("k") + 1))}, None),
        ({"rows": rows.where("id < 50").repartition(3).crossJoin(rows.where("id < 5").repartition(2))}, None),
    ):
        deployment = deploy(program, parallelism=parallelism)
        assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
        tail = deployment._vertices[0]
        assert deployment.adaptations().get(tail.id, StageAdaptation()).tasks is None
        assert tasks_by_vertex(deployment)[tail.name] == (tail.parallelism, tail.parallelism)
        assert rows_of(deployment, "rows") == sorted(map(tuple, program["rows"].collect()), key=repr)


@pytest.mark.parametrize("key", ["spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled"])
def test_the_users_configuration_decides_about_partitions(key, spark, numbers, deploy):
    spark.conf.set(key, "false")
    try:
        deployment = deploy({"rows": spark.read.parquet(numbers).groupBy("k").count()}, parallelism=None)
        assert deployment.wait(60) is JobStatus.FINISHED
    finally:
        spark.conf.unset(key)
    assert not any(deployment.adaptations().values())


def test_sides_of_a_join_are_merged_alike(spark, numbers, deploy):
    rows = spark.read.parquet(numbers)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        joined = rows.join(rows.groupBy("m").agg(F.max("id").alias("most")), "m")
        ranked = joined.withColumn("r", F.rank().over(Window.partitionBy("m").orderBy("id")))
        deployment = deploy({"rows": ranked}, parallelism=None)
        assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
        assert rows_of(deployment, "rows") == sorted(map(tuple, ranked.collect()), key=repr)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert {how.tasks for how in deployment.adaptations().values()} == {1}
