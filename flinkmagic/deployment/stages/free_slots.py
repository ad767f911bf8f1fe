"""Waits until Spark has as many free slots as a pipelined region needs.

Spark fails the job of a region with ``CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT`` if its tasks do not all fit beside the
running and waiting tasks of other jobs, the user's own among them. Our slot pool knows only the tasks of our jobs; so
the region's own thread counts Spark's just before it submits. Seen on 4.3.0.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from flinkmagic.jvm.java import items

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.planning.handles import StageHandle

_PAUSE_S = 0.05


class WaitingRun(Protocol):
    """A run that waits for slots."""

    handle: StageHandle
    waiting_for: str

    def check_wanted(self) -> None:
        """Raise if it is no longer wanted."""
        ...


def await_free_slots(sc: SparkContext, run: WaitingRun) -> None:
    """Wait until all tasks of a region find a slot, or the region is no longer wanted."""
    needed, vertices = slots_needed(run.handle), 1 + len(run.handle.upstream)
    while (free := free_slots(sc)) < needed:
        of = f"the region of {run.handle.name} ({vertices} vertices)"
        run.waiting_for = (
            f"{of} waits for {needed} slots, which it needs simultaneously, and Spark's other jobs leave {max(0, free)}"
        )
        time.sleep(_PAUSE_S)
        run.check_wanted()
    run.waiting_for = ""


def slots_needed(handle: StageHandle) -> int:
    """Return how many slots a pipelined region needs simultaneously: Spark runs one task in a slot."""
    return sum(max(1, one.tasks) for one in (handle, *handle.upstream))


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
