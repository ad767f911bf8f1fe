"""`observe` in a job's writes and results: observations and listeners hear what they hear of plain queries."""

from __future__ import annotations

import time

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.reuse.retention import Retention
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus


@pytest.fixture
def n(spark):
    """The count of what is observed, under the name `n`."""
    return F.count(F.lit(1)).alias("n")


@pytest.fixture
def metrics_heard(spark, query_listener):
    """What a listener of the session was told of metrics since it was last asked, a dict for each query."""

    def heard():
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        found = []
        while query_listener.next() is not None:
            metrics = query_listener.next().observedMetrics()
            names = [metrics.keys().toSeq().apply(number) for number in range(metrics.size())]
            found.append({name: _row(metrics.apply(name)) for name in names})
        return found

    return heard


def _row(row):
    return tuple(row.get(number) for number in range(row.size()))


def finish(deployment):
    assert deployment.wait(60) is JobStatus.FINISHED, [
        str(each.root.error.__cause__ or each.root.error) for each in deployment.exceptions()
    ]


def metrics_of(observation):
    """`Observation.get`, which waits for ever where there is nothing to get."""
    assert is_complete(observation)
    return observation.get


def is_complete(observation):
    return observation._jo.future().isCompleted()


def test_a_write_completes_what_is_observed_before_and_after_a_shuffle(
    spark, n, deploy, tmp_path, numbers, metrics_heard
):
    def write(where):
        before, after = Observation(), Observation("after")
        read = spark.read.parquet(numbers).observe(before, n, F.max("id").alias("last"))
        sums = read.groupBy("k").count().observe(after, n, F.sum("count").alias("rows"))
        sums.observe("named", F.min("k").alias("least")).write.parquet(str(tmp_path / where))
        return before, after

    plain = write("plain")
    expected = [metrics_of(observation) for observation in plain]
    assert expected == [{"n": 2000, "last": 1999}, {"n": 7, "rows": 2000}]
    metrics_heard()
    with capture(spark) as program:
        deferred = write("deferred")
    assert not any(map(is_complete, deferred))
    finish(deploy(program))
    assert all(map(is_complete, deferred))
    assert [metrics_of(observation) for observation in deferred] == expected
    (heard,) = metrics_heard()
    assert sorted(heard.values()) == [(0,), (7, 2000), (2000, 1999)]
    assert {"after", "named"} < heard.keys()


@pytest.mark.parametrize("share", ["auto", "never"])
def test_writes_that_share_an_observed_frame_complete_it_once_with_exact_values(
    spark, n, deploy, tmp_path, numbers, metrics_heard, share
):
    """A boundary, an equal exchange, and with `never` a plan of each write's own."""
    below, above = Observation("below"), Observation("above")
    with capture(spark) as program:
        read = spark.read.parquet(numbers).observe(below, n)
        sums = read.groupBy("m").agg(F.sum("k").alias("s")).observe(above, n, F.sum("s").alias("total"))
        sums.where("m > 50").write.parquet(str(tmp_path / "many"))
        sums.groupBy((F.col("m") % 3).alias("r")).count().write.parquet(str(tmp_path / "few"))
    finish(deploy(program, share=share))
    total = sum(number % 7 for number in range(2000))
    assert (metrics_of(below), metrics_of(above)) == ({"n": 2000}, {"n": 100, "total": total})
    assert metrics_heard() == [{"below": (2000,), "above": (100, total)}] * 2


@pytest.mark.long
def test_the_first_write_of_the_cell_completes_it_whichever_ends_first(spark, n, deploy, tmp_path):
    wait = F.udf(lambda number: time.sleep(1.0) or number, "long")
    seen = Observation()
    with capture(spark) as program:
        rows = spark.range(0, 50, 1, 1).observe(seen, n)
        rows.limit(3).coalesce(1).select(wait("id").alias("id")).write.parquet(str(tmp_path / "some"))
        rows.write.parquet(str(tmp_path / "all"))
    deployment = deploy(program, share="never")
    finish(deployment)
    plain = Observation()
    spark.range(0, 50, 1, 1).observe(plain, n).limit(3).coalesce(1).select(wait("id")).write.format("noop").mode(
        "overwrite"
    ).save()
    assert metrics_of(seen) == metrics_of(plain) != {"n": 50}


def test_results_and_commands_that_hide_their_query_complete_theirs(spark, n, deploy, metrics_heard):
    kept, saved, inside = Observation("kept"), Observation("saved"), Observation("inside")
    frame = spark.range(0, 8, 1, 2).observe(kept, n, F.sum("id").alias("sum"))
    finish(deploy({"rows": frame.repartition(3)}))
    assert metrics_of(kept) == {"n": 8, "sum": 28}
    assert metrics_heard() == [{"kept": (8, 28)}]
    most = spark.range(0, 5, 1, 2).observe(inside, n).agg(F.max("id").alias("m"))
    try:
        with capture(spark) as program:
            rows = spark.range(0, 9, 1, 2).join(most.hint("broadcast"), F.col("id") <= F.col("m"))
            rows.observe(saved, n).orderBy("id").limit(4).write.saveAsTable("observed_table")
        finish(deploy(program))
        assert (metrics_of(inside), metrics_of(saved)) == ({"n": 5}, {"n": 5})
        assert spark.table("observed_table").count() == 4
    finally:
        spark.sql("DROP TABLE IF EXISTS observed_table")


def test_an_attempt_that_fails_counts_for_nothing(spark, n, deploy, tmp_path):
    mark = tmp_path / "failed_once"

    def fails_once(number):
        if number == 5 and not mark.exists():
            mark.touch()
            raise ValueError("once")
        return number

    flaky = F.udf(fails_once, "long")
    before, after = Observation(), Observation()
    with capture(spark) as program:
        rows = spark.range(0, 8, 1, 4).observe(before, n).repartition(2).observe(after, n)
        rows.select(flaky("id").alias("id")).write.parquet(str(tmp_path / "out"))
    restarts = FixedDelayRestartBackoffTimeStrategy(2, 20.0)
    finish(deploy(program, restart_strategy=restarts))
    assert mark.exists()
    assert (metrics_of(before), metrics_of(after)) == ({"n": 8}, {"n": 8})


def test_after_a_failure_metrics_are_those_of_what_ran_and_the_rest_is_left_to_later_queries(
    spark, n, deploy, tmp_path
):
    failing, never = Observation(), Observation()
    with capture(spark) as program:
        rows = spark.range(0, 6, 1, 2).observe(failing, n).repartition(2)
        broken = rows.select(F.expr("raise_error('no')").cast("long").alias("id"))
        rest = broken.repartition(3).observe(never, n)
        rest.write.parquet(str(tmp_path / "out"))
    assert deploy(program).wait(60) is JobStatus.FAILED
    assert metrics_of(failing) == {"n": 6}
    assert not is_complete(never)
    with pytest.raises(Exception, match="no"):
        rest.collect()
    assert is_complete(never)  # Spark's own way again


def test_what_is_observed_is_computed_by_every_run(spark, n, deploy, tmp_path):
    def run(observation):
        frame = spark.range(0, 30, 1, 2).observe(observation, n).groupBy((F.col("id") % 3).alias("k")).count()
        deployment = deploy({"counts": frame}, retention=Retention(spark.sparkContext, "observed", "job"))
        finish(deployment)
        assert metrics_of(observation) == {"n": 30}
        return deployment

    run(Observation("same"))
    again = run(Observation("same"))
    assert not again.taken_up.finished
    assert {reason.partition(",")[0] for reason in again.retention.reasons.values()} == {"it is observed (observe)"}
