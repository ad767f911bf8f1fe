"""Counts the slots that Spark has free, which a pipelined region needs.

Spark fails the job of a region with ``CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT`` if its tasks do not all fit beside the
running and waiting tasks of other jobs, the user's own among them. Our slot pool knows only the tasks of our jobs; so
the region's own thread counts Spark's just before it submits. Seen on 4.3.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.jvm.java import items

if TYPE_CHECKING:
    from pyspark import SparkContext


def free_slots(sc: SparkContext) -> int:
    """Return Spark's slots without those that its running and waiting tasks need, as its DAGScheduler counts them."""
    context = sc._jsc.sc()
    total = int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
    pool = context.taskScheduler().rootPool()
    # It lists the sets of tasks that are still to be launched, and counts those that run of all sets.
    waiting = sum(
        int(tasks.numTasks()) - int(tasks.tasksSuccessful()) - int(tasks.runningTasks())
        for tasks in items(pool.getSortedTaskSetQueue())
    )
    return total - int(pool.runningTasks()) - waiting
