import threading

from flinkmagic.deployment.spark_jobs import JobProperties

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
        JobProperties(sc, "group", "pool").enter("tag", "a stage", clone)
        seen.update({name: sc.getLocalProperty(name) for name in names})

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert list(seen.values()) == ["group", "tag", "a stage", "Asia/Tokyo", None, "kept", "kept, too"]
