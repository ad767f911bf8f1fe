import threading

import pytest

from flinkmagic.deployment.stages.spark_jobs import JobProperties

GROUP, TAGS, DESCRIPTION = "spark.jobGroup.id", "spark.job.tags", "spark.job.description"


def test_tasks_see_sparks_part_of_the_sessions_configuration_and_the_users_properties(spark):
    sc = spark.sparkContext
    clone = spark._jsparkSession.cloneSession()
    clone.sessionState().conf().setConfString("spark.sql.session.timeZone", "Asia/Tokyo")
    clone.sessionState().conf().setConfString("flinkmagic.test", "not Spark's")
    names = (GROUP, TAGS, DESCRIPTION, "spark.sql.session.timeZone", "flinkmagic.test", "users.own", "spark.users.own")
    seen = {}

    def run():
        sc.setLocalProperty("users.own", "kept")
        sc.setLocalProperty("spark.users.own", "kept, too")
        sc.setLocalProperty(DESCRIPTION, "the user's")
        JobProperties(sc, "group", "pool").enter("tag", "a stage", "", clone)
        seen.update({name: sc.getLocalProperty(name) for name in names})

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert list(seen.values()) == ["group", "tag", "a stage", "Asia/Tokyo", None, "kept", "kept, too"]


def test_the_users_tags_and_pool_stay_and_what_names_his_work_does_not(spark):
    sc = spark.sparkContext
    names = (TAGS, "spark.scheduler.pool", "spark.sql.execution.id", "callSite.short", "spark.job.interruptOnCancel")
    seen = []

    def run():
        sc.setLocalProperty(TAGS, "users")
        sc.setLocalProperty("spark.scheduler.pool", "chosen")
        sc.setLocalProperty("spark.sql.execution.id", "7")
        sc.setLocalProperty("callSite.short", "the user's line")
        properties = JobProperties(sc, "group", "pool")
        for tag in ("first", "second"):
            properties.enter(tag, "a stage", "", None)
            seen.append([sc.getLocalProperty(name) for name in names])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert seen == [
        ["users,first", "chosen", None, "a stage", "true"],
        ["users,second", "chosen", None, "a stage", "true"],
    ]


def test_a_stage_tells_its_place_which_no_other_job_inherits(spark):
    sc = spark.sparkContext
    seen = []

    def run():
        properties = JobProperties(sc, "group", "pool")
        for place in ("run 01234567 write", ""):
            properties.enter("tag", "a stage", place, None)
            seen.append(sc.getLocalProperty("flinkmagic.stage"))
        sc.setLocalProperty("flinkmagic.stage", "of an action around it")
        JobProperties(sc, "group", "pool").enter("tag", "a stage", "", None)
        seen.append(sc.getLocalProperty("flinkmagic.stage"))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert seen == ["run 01234567 write", None, None]


def test_what_interrupts_the_users_queries_reaches_the_jobs(spark):
    sc, session = spark.sparkContext, spark._jsparkSession
    if not hasattr(spark, "interruptAll") or sc.version < "4":
        pytest.skip("a session of Spark 3 interrupts nothing")
    seen = []

    def run():
        spark.addTag("users")
        sc.addJobTag("jobs")
        JobProperties(sc, "group", "pool", session=session).enter("tag", "a stage", "", None)
        seen.extend(sc.getLocalProperty(TAGS).split(","))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert seen[:2] == ["jobs", session.sessionJobTag()]
    assert seen[2].startswith(session.sessionJobTag())
    assert seen[2].endswith("-users")
    assert seen[3:] == ["tag"]


def test_a_stage_makes_its_session_the_active_one(spark):
    clone = spark._jsparkSession.cloneSession()
    seen = []

    def run():
        JobProperties(spark.sparkContext, "group", "pool").enter("tag", "a stage", "", clone)
        active = spark._jvm.org.apache.spark.sql.SparkSession.getActiveSession()
        seen.append(active.get().equals(clone))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert seen == [True]


def test_nothing_stays_of_the_job_that_a_thread_served_before(spark):
    sc, jvm = spark.sparkContext, spark._jvm
    clone = spark._jsparkSession.cloneSession()
    clone.sessionState().conf().setConfString("spark.sql.session.timeZone", "Asia/Tokyo")
    names = (GROUP, TAGS, DESCRIPTION, "flinkmagic.stage", "spark.sql.session.timeZone")
    first, second = JobProperties(sc, "first", None), JobProperties(sc, "second", None)
    seen = []

    def run():
        for properties, place, session in ((first, "map", clone), (second, "", None)):
            properties.enter(f"tag of {place}", "a stage", place, session)
            active = jvm.org.apache.spark.sql.SparkSession.getActiveSession()
            seen.append([*(sc.getLocalProperty(name) for name in names), active.isDefined()])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert seen == [
        ["first", "tag of map", "a stage", "map", "Asia/Tokyo", True],
        ["second", "tag of ", "a stage", None, None, False],
    ]
