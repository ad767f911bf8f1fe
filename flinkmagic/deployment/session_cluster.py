"""Presents a Spark session as a Flink cluster: a dispatcher for jobs, and a resource manager for executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.scheduling.dispatcher import Dispatcher, JobDetails
from flinkmagic.scheduling.slots.resource_gateways import JobMasterGateway

if TYPE_CHECKING:
    from pyspark import SparkContext


class SparkResourceManager:
    """Records how many slots each job of a session requires (a `ResourceManagerGateway`); callable from any thread.

    It is not Flink's `ResourceManager` because Spark hands out slots itself: executors register with Spark, and Spark's
    own scheduler decides which task of which job goes to which core. So no executor is asked to offer a slot, and no
    job is told that there are too few: its tasks wait their turn in Spark.
    """

    def __init__(self, slots: SessionSlots) -> None:
        self.slots = slots
        self._masters: dict[str, JobMasterGateway] = {}
        self._required: dict[str, int] = {}

    def register_job_master(self, job_master: JobMasterGateway) -> None:
        self._masters[job_master.job_id] = job_master
        self.slots.refresh()
        job_master.event_log.add("resource manager", f"the master of job {job_master.job_id} registers")

    def declare_required_resources(self, job_id: str, slots: int) -> None:
        """Record how many slots a job needs in all, and log how many there are."""
        master, before = self._masters.get(job_id), self._required.get(job_id)
        if master is not None and slots not in (before, 0):
            self._required[job_id] = slots
            text = f"job {job_id} requires {slots} slots, the session has {self.slots.total}"
            master.event_log.add("resource manager", text)

    def disconnect_job_master(self, job_id: str) -> None:
        """Forget a job."""
        self._masters.pop(job_id, None)
        self._required.pop(job_id, None)


class SessionCluster:
    """The dispatcher and the resource manager of a SparkContext (a session cluster, in Flink's words)."""

    def __init__(self, sc: SparkContext) -> None:
        self.dispatcher = Dispatcher()
        self.resource_manager = SparkResourceManager(SessionSlots(sc))


_DISPATCHERS: list[Dispatcher] = []
"""Those of all contexts, in order: a cluster goes with its context, and what it ran is still told of."""


@kept_for_context
def session_cluster(sc: SparkContext) -> SessionCluster:
    """Return the one cluster of a SparkContext."""
    cluster = SessionCluster(sc)
    _DISPATCHERS.append(cluster.dispatcher)
    return cluster


def submitted_jobs() -> list[JobDetails]:
    """Return the jobs of this process, those of sessions that were stopped too, as their dispatchers know them."""
    return [job for dispatcher in list(_DISPATCHERS) for job in dispatcher.jobs()]
