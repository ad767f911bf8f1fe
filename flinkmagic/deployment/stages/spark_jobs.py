"""Marks our own Spark jobs inside the user's session, and cancels only those.

A vertex's jobs are submitted on a thread on which nothing else runs meanwhile (`stage_threads`). In PySpark's pinned
mode a Python thread has a JVM thread of its own, and Spark's local properties (tags, job group, pool, the SQL
configuration that tasks see) belong to that thread, so the user's own threads are not touched. Seen on Spark 3.5.9 and
4.3.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.errors.deployment import PinnedThreadsRequiredError
from flinkmagic.jvm.contexts import jvm_context

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext


def require_pinned_threads(sc: SparkContext) -> None:
    """Check that a Python thread has a JVM thread of its own.

    Raises
    ------
    PinnedThreadsRequiredError
        If ``PYSPARK_PIN_THREAD`` switched that off: tags would be set on other jobs.
    """
    from py4j.clientserver import ClientServer

    if not isinstance(sc._gateway, ClientServer):
        raise PinnedThreadsRequiredError


def is_fair(sc: SparkContext) -> bool:
    """Return whether the session shares its executors between pools (``spark.scheduler.mode``)."""
    return str(sc._conf.get("spark.scheduler.mode", "FIFO")).upper() == "FAIR"


class JobProperties:
    """The local properties under which a job's Spark jobs run.

    They are the caller's own (pool, tags, everything else that was set), without what names the *caller's* work (group,
    description, SQL execution), and with the job's group added. A job that is the caller's own work, an action's, keeps
    group and description if they are set. Made on the thread that starts the job.

    Parameters
    ----------
    group : str
        The Spark job group of all vertices, by which the job is found in Spark's UI.
    pool : str, optional
        The FAIR pool, used if the session runs FAIR and the caller chose none; by default Spark's own.
    session : py4j.java_gateway.JavaObject, optional
        The user's Java session, whose interrupts are to reach the jobs as they reach those of its queries.
    """

    def __init__(
        self,
        sc: SparkContext,
        group: str,
        pool: str | None,
        *,
        is_callers: bool = False,
        session: JavaObject | None = None,
    ) -> None:
        self._properties: Any = CLASSES.new_instance(sc._gateway, "JobProperties")
        self._properties.inherit(jvm_context(sc), group, pool if is_fair(sc) else None, is_callers)
        if session is not None:
            self._properties.tagAs(session)

    def enter(self, tag: str, description: str, place: str, jsession: JavaObject | None) -> None:
        """Put this thread's jobs under `tag`, with the SQL configuration of a session.

        What `SQLExecution.withSQLConfPropagated` does for a block is done for the thread: tasks read the session's
        configuration (time zone, ANSI mode, ...) from local properties.

        Parameters
        ----------
        place : str
            The stage's (`StagePlace`); empty for jobs that are none of its run's stages.
        """
        self._properties.enter(tag, description, place, jsession)


def cancel_jobs(sc: SparkContext, tag: str) -> None:
    """Cancel the active Spark jobs under a tag, and no others."""
    jvm_context(sc).cancelJobsWithTag(tag)
