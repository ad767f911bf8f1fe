"""Waits until Spark has as many free slots as a pipelined region needs.

Spark fails the job of a region with ``CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT`` if its tasks do not all fit beside the
running and waiting tasks of other jobs, the user's own among them. Our slot pool knows only the tasks of our jobs; so
the region's own thread counts Spark's just before it submits. Seen on 4.3.0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from flinkmagic.jvm.java import items

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    from flinkmagic.planning.handles import StageHandle

_PAUSE_S = 0.05


def await_free_slots(sc: SparkContext, handle: StageHandle, ready: Callable[[], None]) -> None:
    """Wait until all tasks of a region find a slot; `ready` is called before each look, and may raise."""
    needed = sum(max(1, one.tasks) for one in (handle, *handle.upstream))
    ready()
    while free_slots(sc) < needed:
        time.sleep(_PAUSE_S)
        ready()


def free_slots(sc: SparkContext) -> int:
    """Return Spark's slots without those that its running and waiting tasks need, as its DAGScheduler counts them."""
    context = sc._jsc.sc()
    total = int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
    return total - sum(map(_outstanding, items(context.taskScheduler().rootPool().getSortedTaskSetQueue())))


def _outstanding(task_set: JavaObject) -> int:
    if task_set.isZombie():
        return int(task_set.runningTasks())
    return int(task_set.numTasks()) - int(task_set.tasksSuccessful())
