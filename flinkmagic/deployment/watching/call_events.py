"""Takes what Spark has reported of the jobs that a call of the user's ran by itself (``java/CallEvents.java``)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_events import JobStarted, TaskEnded, TaskStarted, parse_lines
from flinkmagic.deployment.watching.task_records import SlotNumbers, TaskLog, TaskRecord
from flinkmagic.jvm.contexts import jvm_context, kept_for_context

if TYPE_CHECKING:
    from pyspark import SparkContext

PREFIX = "flinkmagic-call-"
"""How the tags of calls begin."""

_WAIT_MS = 1000
"""Spark's listeners hear of an event soon after it; with more to hear of than they can, some time later."""


@dataclass(frozen=True)
class CallEvents:
    """What Spark has reported of one call."""

    began_ms: float
    """When the call began, milliseconds since the epoch."""
    ended_ms: float
    """When it ended, milliseconds since the epoch."""
    slots: int
    """How many tasks the session runs simultaneously."""
    tasks: tuple[TaskRecord, ...] = field(repr=False)
    """All attempts of all stages, with no vertex."""
    last_stages: frozenset[int]
    """The ids of the last stages of its Spark jobs."""
    lines: tuple[bytes, ...] = field(repr=False)
    """All other events, as Spark's event log has them: jobs, stages, SQL executions."""


@kept_for_context
def listen(sc: SparkContext) -> None:
    """Let Spark report about calls from now on, once for each SparkContext."""
    _listener(sc).listenTo(jvm_context(sc), PREFIX)


def take(sc: SparkContext, tag: str, began_ms: float, ended_ms: float) -> CallEvents | None:
    """Return what Spark has reported of a call; None if no task of it ran, or too many to be looked at."""
    deflated: bytes = _listener(sc).take(tag, _WAIT_MS)
    if not deflated:
        return None
    lines, _, events = zlib.decompress(deflated).partition(b"\0")
    told = list(parse_lines(lines.decode()))
    slots = SessionSlots(sc)
    log = TaskLog(SlotNumbers(slots.of))
    for event in told:
        if isinstance(event, TaskStarted):
            log.started(event, "", "", "task")
        elif isinstance(event, TaskEnded):
            log.ended(event)
    last = frozenset(
        event.final_stage.stage_id for event in told if isinstance(event, JobStarted) and event.final_stage is not None
    )
    tasks = tuple(log.records())
    if not tasks:
        return None
    return CallEvents(began_ms, ended_ms, slots.total, tasks, last, tuple(events.splitlines()))


def _listener(sc: SparkContext) -> Any:
    return CLASSES.shared_instance(sc._gateway, "CallEvents")
