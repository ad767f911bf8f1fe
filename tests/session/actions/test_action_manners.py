"""Actions through the machine leave the user's own thread, jobs and session as plain ones do."""

from __future__ import annotations

import signal
import threading
import time
import uuid

import pytest
from py4j.protocol import Py4JJavaError

from flinkmagic.session import SessionActions
from flinkmagic.session.actions.action_graph import ActionGraph

GROUPED = """
grouped = spark.range(0, 100, 1, 4).groupBy(F.expr("id % 7 AS k")).count()
"""

SLOW = """
def nap(id):
    import pathlib, time
    pathlib.Path(begun).touch()
    time.sleep(60)
    return id
slow = spark.range(0, 2, 1, 2).select(F.udf(nap, "long")("id").alias("k")).groupBy("k").count()
None
"""

NAMES = (
    "spark.jobGroup.id",
    "spark.job.description",
    "spark.job.tags",
    "spark.scheduler.pool",
    "callSite.long",
    "flinkmagic.stage",
    "users.own",
)


def jobs_of(spark, group):
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def in_a_task(begun, do):
    """Do something as soon as a task of `SLOW` runs: Spark's status store may learn of it ten seconds later."""

    def wait() -> None:
        deadline = time.monotonic() + 60
        while not begun.exists():
            assert time.monotonic() < deadline, "no task has begun"
            time.sleep(0.05)
        do()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def defined_slow(session, begun):
    """Define `slow`; return the file that its tasks make when they begin."""
    session.namespace["begun"] = str(begun)
    session.plain(SLOW)
    return begun


@pytest.fixture
def begun(session, tmp_path):
    """The file that a task of `SLOW` makes when it begins."""
    return defined_slow(session, tmp_path / "begun")


def no_task_runs(session):
    tracker = session.spark.sparkContext.statusTracker()
    for _ in range(1200):
        if not tracker.getActiveStageIds():
            return True
        time.sleep(0.05)
    return False


def test_jobs_carry_the_users_group_and_description_and_the_thread_keeps_its_properties(session) -> None:
    sc = session.spark.sparkContext
    session.plain(GROUPED + "None")
    group = str(uuid.uuid4())  # the driver is shared: a group's jobs are those of every test that named it so
    sc.setJobGroup(group, "what I do")
    sc.setLocalProperty("users.own", "kept")
    try:
        before = [sc.getLocalProperty(name) for name in NAMES]
        assert session.cell("grouped.count()") == 7
        assert session.report.is_driven
        assert [sc.getLocalProperty(name) for name in NAMES] == before
        sc._jsc.sc().listenerBus().waitUntilEmpty()
        found = jobs_of(session.spark, group)
        assert len(found) == 3  # two stages before the last
        store = sc._jsc.sc().statusStore()
        assert {store.job(job).description().get() for job in found} == {"what I do"}
    finally:
        for name in NAMES:
            sc.setLocalProperty(name, None)


@pytest.mark.long
def test_the_users_cancelling_of_the_group_cancels_the_action(session, tmp_path) -> None:
    sc = session.spark.sparkContext
    session.plain(GROUPED + "None")
    errors = []
    for run in (session.plain, session.cell):
        # A task of the first run may make its file after that run was cancelled.
        begun = defined_slow(session, tmp_path / run.__name__)
        sc.setJobGroup("to end", "", interruptOnCancel=True)
        canceller = in_a_task(begun, lambda: sc.cancelJobGroup("to end"))
        try:
            with pytest.raises(Exception, match="cancelled") as raised:
                run("slow.collect()")
            errors.append((type(raised.value), str(raised.value).partition(" o")[0]))
        finally:
            canceller.join()
            for name in NAMES:
                sc.setLocalProperty(name, None)
        assert no_task_runs(session)
    assert errors[0] == errors[1]


def test_the_session_s_interrupt_ends_an_action_which_does_not_run_again(session, begun, monkeypatch) -> None:
    if session.spark.version < "4":
        pytest.skip("a session of Spark 3 interrupts nothing")
    run = ActionGraph.run

    def keeping(graph, wait):
        graph.boundaries = ("rows for later",)
        return run(graph, wait)

    monkeypatch.setattr(ActionGraph, "run", keeping)
    monkeypatch.setattr(SessionActions, "_without_keeping", lambda *_: pytest.fail("it runs again"))
    canceller = in_a_task(begun, session.spark.interruptAll)
    with pytest.raises(Py4JJavaError, match="cancelled"):
        session.cell("slow.where('count > 1').count()")
    canceller.join()
    assert (session.report.status, session.report.note) == ("CANCELED", "")
    assert no_task_runs(session)


def test_an_interrupt_ends_the_job_and_leaves_the_session_usable(session, begun) -> None:
    session.plain(GROUPED + "None")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident
    # A signal, as Jupyter sends it: `_thread.interrupt_main` would not wake a thread that waits.
    interrupter = in_a_task(begun, lambda: signal.pthread_kill(main, signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            session.cell("slow.count()")
        interrupter.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert session.report.text == "count()"
    assert session.report.status == "CANCELED"  # else its card would run for ever
    assert no_task_runs(session)
    assert session.cell("grouped.count()") == 7
    assert session.report.is_driven


def test_configuration_and_active_session_stay(session) -> None:
    session.plain(GROUPED + "None")
    spark = session.spark
    before = spark._jsparkSession.conf().getAll().toString()
    session.cell("grouped.toPandas()")
    session.cell("grouped.show()")
    after = spark._jsparkSession.conf().getAll().toString()
    assert after == before
    active = spark._jvm.org.apache.spark.sql.SparkSession.getActiveSession()
    assert active.get().equals(spark._jsparkSession)


def test_a_frame_of_another_session_is_planned_by_that_session(session) -> None:
    session.plain(
        """
        other = spark.newSession()
        other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        hours = other.range(0, 48, 1, 2).selectExpr("hour(timestamp_seconds(id * 3600)) AS h", "id")
        hours = hours.groupBy("h").agg(F.min("id").alias("first")).orderBy("h")
        None
        """
    )
    assert repr(session.cell("hours.collect()")) == repr(session.plain("hours.collect()"))
    assert session.report.is_driven


def test_actions_inside_of_actions_are_spark_s(session) -> None:
    session.plain(
        """
        found = []
        def batch(df, number):
            found.append(df.groupBy().count().first()[0])
        None
        """
    )
    assert (
        session.cell(
            """
            stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
            query = stream.writeStream.foreachBatch(batch).trigger(availableNow=True).start()
            query.awaitTermination(60)
            query.exception()
            """
        )
        is None
    )
    assert session.namespace["found"]
