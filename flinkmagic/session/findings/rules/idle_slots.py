"""Slots without a task while a stage could have run: its inputs were ready.

Source: the gaps between jobs in Spark's event timeline (Databricks' guide to the Spark UI).

Threshold: slots that the session has and the job was not given (``--slots``), if it used most of its own meanwhile; and
waits for what happens on the driver between stages (planning, listing and committing files) in which each slot, on
average, idled for a second, and for twice as long as in the job's other waits (median): if all are as long, the driver
is slow as a whole, and its time is told of the job. Seen on two cores with a load of 15: 0.1 to 1.1 s between any two.
What it takes to build a broadcast is no wait: without it a join takes longer (query 22 of TPC-H, whose broadcast of
1.5 million rows takes 0.8 s of 2.5 s to build, takes 4.5 s).

Time for which several stages waited is that of the one that began first.

Counter-example: the tenths of a second between any two stages; slots in which another stage's tasks run; the first job
of a driver, which loads Spark's classes meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flinkmagic.amounts import duration
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, VertexFacts, median, metric
from flinkmagic.session.findings.rule import Rule

LONG_MS = 1000.0
TIMES = 2
MOSTLY = 0.5
"""A job waits for slots, and not for the driver, if so much of its own were in use."""

Part = tuple[float, float]
"""From when to when."""
Wait = tuple[VertexFacts, list[Part], float]
"""A stage, when it waited, and for how long slots idled meanwhile, added up over them."""


def _find(job: JobFacts) -> Iterator[Finding]:
    waits = _waits(job)
    for vertex, parts, inside_ms in waits:
        ready_ms = _ready_ms(job, vertex)
        waited_ms = sum(end - begin for begin, end in parts)
        if waited_ms and job.slots < job.slots_of_session and inside_ms <= (1 - MOSTLY) * job.slots * waited_ms:
            yield RULE.finding(
                f"it waited {duration(vertex.start_ms - ready_ms)} for a slot: the job may use {job.slots} of the "
                f"session's {job.slots_of_session}",
                vertex,
                None,
                sum(job.idle_ms(*part, job.slots_of_session) for part in parts) - inside_ms,
                "measured: the time for which slots that the job may not use had no task of it meanwhile",
                "measured",
                f"%config FlinkMagics.slots = {job.slots_of_session}  # or leave --slots out",
            )
        elif vertex.inputs and not job.is_first and _is_long(job, vertex, inside_ms, waits):
            yield RULE.finding(
                f"no task of it was launched for {duration(vertex.start_ms - ready_ms)} after its inputs were ready, "
                "and slots idled",
                vertex,
                None,
                inside_ms,
                "measured: the time for which the job's slots had no task while it could have run",
                "possible",
                f"%flinkjobs {job.typed_name} --log  # what the driver did then: planning, listing or committing files",
            )


def _waits(job: JobFacts) -> list[Wait]:
    """Return how each stage waited, without the time for which one that began before it did."""
    taken: list[Part] = []
    found = []
    for vertex in sorted(job.vertices, key=lambda one: one.start_ms):
        parts = _without(_ready_ms(job, vertex), vertex.start_ms, taken)
        taken += parts
        found.append((vertex, parts, sum(job.idle_ms(*part) for part in parts)))
    return found


def _is_long(job: JobFacts, vertex: VertexFacts, inside_ms: float, waits: Iterable[Wait]) -> bool:
    if inside_ms < job.slots * LONG_MS:
        return False
    others = [idle_ms for one, _, idle_ms in waits if one.inputs and one is not vertex]
    return inside_ms >= TIMES * median(filter(None, others))


def _without(begin_ms: float, end_ms: float, taken: Iterable[Part]) -> list[Part]:
    """Return the parts of a time that are not taken."""
    parts = []
    for begin, end in sorted(taken):
        if begin_ms < begin < end_ms:
            parts.append((begin_ms, begin))
        begin_ms = max(begin_ms, end)
    return [*parts, (begin_ms, end_ms)] if begin_ms < end_ms else parts


def _ready_ms(job: JobFacts, vertex: VertexFacts) -> float:
    """Return when all that a vertex reads was there: a broadcast when the driver has built and sent it."""
    producers = [producer.end_ms + _built_ms(producer) for producer in job.producers(vertex)]
    first = min(one.start_ms for one in job.vertices)
    return max(producers, default=first)


def _built_ms(producer: VertexFacts) -> int:
    metrics = producer.metrics_above if producer.kind == "broadcast" else {}
    return metric(metrics, "buildTime") + metric(metrics, "broadcastTime")


RULE = Rule("idle-slots", _find)
