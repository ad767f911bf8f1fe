"""Spark jobs of our own inside the user's session: how they are marked, and how only they are cancelled.

A vertex's jobs are submitted on a thread on which nothing else runs meanwhile (`stage_threads`). In PySpark's pinned
mode a Python thread has a JVM thread of its own, and Spark's local properties (tags, job group, pool, the SQL
configuration that tasks see) belong to that thread, so nothing of the user's own threads is touched. Seen on Spark
3.5.9 and 4.3.0.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.java import java_class
from flinkmagic.errors import PinnedThreadsRequiredError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

TAGS = "spark.job.tags"
GROUP = "spark.jobGroup.id"
DESCRIPTION = "spark.job.description"
INTERRUPT = "spark.job.interruptOnCancel"
POOL = "spark.scheduler.pool"
_NOT_INHERITED = ("spark.sql.execution.", "callSite.", GROUP, DESCRIPTION, INTERRUPT)


def require_pinned_threads(sc: SparkContext) -> None:
    """Check that a Python thread has a JVM thread of its own.

    Raises
    ------
    PinnedThreadsRequiredError
        Where ``PYSPARK_PIN_THREAD`` switched that off: tags would land on other people's jobs.
    """
    from py4j.clientserver import ClientServer

    if not isinstance(sc._gateway, ClientServer):
        raise PinnedThreadsRequiredError


def is_fair(sc: SparkContext) -> bool:
    """Whether the session shares its executors between pools (``spark.scheduler.mode``)."""
    return str(sc._jsc.sc().conf().get("spark.scheduler.mode", "FIFO")).upper() == "FAIR"


class JobProperties:
    """The local properties under which a job's Spark jobs run.

    They are the caller's own (his pool, his tags, whatever else he set), without what names *his* work (group,
    description, SQL execution), and with the job's group on top. Made on the thread that starts the job.

    Parameters
    ----------
    sc : SparkContext
        The session's.
    group : str
        The Spark job group of all vertices, by which the job is found in Spark's UI.
    pool : str
        The FAIR pool, used where the session runs FAIR and the caller chose none.
    """

    def __init__(self, sc: SparkContext, group: str, pool: str) -> None:
        self._sc = sc
        base = sc._jsc.sc().getLocalProperties().clone()
        for name in _names(sc._jvm, base):
            if name.startswith(_NOT_INHERITED):
                base.remove(name)
        base.setProperty(GROUP, group)
        # A task that waits for a Python worker or a socket ends at once only when its thread is interrupted.
        base.setProperty(INTERRUPT, "true")
        if is_fair(sc) and base.getProperty(POOL) is None:
            base.setProperty(POOL, pool)
        self._base = base
        self._users_tags = base.getProperty(TAGS) or ""
        self._lock = threading.Lock()
        self._by_session: dict[str, JavaObject] = {}

    def enter(self, tag: str, description: str, jsession: JavaObject | None) -> None:
        """Put this thread's jobs under `tag`, with the SQL configuration of a session.

        What `SQLExecution.withSQLConfPropagated` does for a block is done for the thread: tasks read the session's
        configuration (time zone, ANSI mode, ...) from local properties.
        """
        properties = self._with_conf(jsession).clone()
        properties.setProperty(TAGS, f"{self._users_tags},{tag}" if self._users_tags else tag)
        properties.setProperty(DESCRIPTION, description)
        self._sc._jsc.sc().setLocalProperties(properties)
        if jsession is not None:
            java_class(self._sc._jvm, "org.apache.spark.sql.SparkSession").setActiveSession(jsession)

    def _with_conf(self, jsession: JavaObject | None) -> Any:
        if jsession is None:
            return self._base
        session_id = jsession.sessionUUID()
        with self._lock:
            found = self._by_session.get(session_id)
            if found is None:
                found = self._by_session[session_id] = self._base.clone()
                found.putAll(self._conf_of(jsession))
            return found

    def _conf_of(self, jsession: JavaObject) -> JavaObject:
        """Spark's part of a session's SQL configuration, as Java properties; in a few calls, however much it is."""
        jvm = self._sc._jvm
        conf = java_class(jvm, "java.util.Properties")()
        # In Scala 2.12 and 2.13 (Spark 3.5 and 4.x) under this name.
        converters = java_class(jvm, "scala.collection.JavaConverters")
        conf.putAll(converters.mapAsJavaMap(jsession.sessionState().conf().getAllConfs()))
        for name in _names(jvm, conf):
            if not name.startswith("spark"):
                conf.remove(name)
        return conf


def _names(jvm: Any, properties: JavaObject) -> list[str]:
    """In one call; to walk through a Java set costs four for each element."""
    joined = str(java_class(jvm, "java.lang.String").join("\x01", properties.stringPropertyNames()))
    return joined.split("\x01") if joined else []


def cancel_jobs(sc: SparkContext, tag: str) -> None:
    """Cancel the active Spark jobs under a tag, and no others."""
    sc._jsc.sc().cancelJobsWithTag(tag)
