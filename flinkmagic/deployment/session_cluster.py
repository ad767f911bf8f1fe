"""Presents a Spark session as a Flink cluster: a dispatcher for jobs, and a resource manager for executors."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from flinkmagic.deployment.spark_resource_manager import SparkResourceManager
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.scheduling.dispatcher import Dispatcher, JobDetails

if TYPE_CHECKING:
    from pyspark import SparkContext


class SessionCluster:
    """The dispatcher and the resource manager of a SparkContext (a session cluster, in Flink's words)."""

    def __init__(self, sc: SparkContext) -> None:
        self.dispatcher = Dispatcher()
        self.resource_manager = SparkResourceManager(SessionSlots(sc))


_CLUSTERS: dict[SparkContext, SessionCluster] = {}
"""The clusters of running contexts, and of the last one that was stopped: a cluster refers to its context."""
_DISPATCHERS: list[Dispatcher] = []
_LOCK = threading.Lock()


def session_cluster(sc: SparkContext) -> SessionCluster:
    """Return the one cluster of a SparkContext."""
    with _LOCK:
        if sc not in _CLUSTERS:
            for stopped in [one for one in _CLUSTERS if one._jsc is None]:
                del _CLUSTERS[stopped]
            _CLUSTERS[sc] = SessionCluster(sc)
            _DISPATCHERS.append(_CLUSTERS[sc].dispatcher)
        return _CLUSTERS[sc]


def submitted_jobs() -> list[JobDetails]:
    """Return the jobs of this process, those of sessions that were stopped too, as their dispatchers know them."""
    with _LOCK:
        dispatchers = list(_DISPATCHERS)
    return [job for dispatcher in dispatchers for job in dispatcher.jobs()]
