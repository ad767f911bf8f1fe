"""Slots without a task while a stage could have run: its inputs were ready.

Source: the gaps between jobs in Spark's event timeline (Databricks' guide to the Spark UI).

Threshold: slots that the session has and the job was not given (``--slots``), if it used most of its own meanwhile; and
waits of at least a second for what happens on the driver between stages: planning, listing and committing files,
building a broadcast.

Counter-example: the tenths of a second between any two stages; slots in which another stage's tasks run.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import duration
from flinkmagic.session.findings.facts import JobFacts, VertexFacts
from flinkmagic.session.findings.finding import Finding, Rule

LONG_MS = 1000.0
MOSTLY = 0.5
"""A job waits for slots, and not for the driver, if so much of its own were in use."""


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        ready_ms = _ready_ms(job, vertex)
        waited_ms = vertex.start_ms - ready_ms
        inside_ms = job.idle_ms(ready_ms, vertex.start_ms)
        if job.slots < job.slots_of_session and inside_ms <= (1 - MOSTLY) * job.slots * waited_ms:
            yield RULE.finding(
                f"it waited {duration(waited_ms)} for a slot: the job may use {job.slots} of the session's "
                f"{job.slots_of_session}",
                vertex,
                None,
                job.idle_ms(ready_ms, vertex.start_ms, job.slots_of_session) - inside_ms,
                "measured: the time for which slots that the job may not use had no task of it meanwhile",
                "measured",
                f"%config FlinkMagics.slots = {job.slots_of_session}  # or leave --slots out",
            )
        elif waited_ms >= LONG_MS and vertex.inputs:
            yield RULE.finding(
                f"no task of it was launched for {duration(waited_ms)} after its inputs were ready, and slots idled",
                vertex,
                None,
                inside_ms,
                "measured: the time for which the job's slots had no task while it could have run",
                "possible",
                "%flinkjobs NAME --log  # what the driver did then: planning, listing or committing files",
            )


def _ready_ms(job: JobFacts, vertex: VertexFacts) -> float:
    """Return when all that a vertex reads was there."""
    producers = [producer.end_ms for producer in job.producers(vertex)]
    first = min(one.start_ms for one in job.vertices)
    return max(producers, default=first)


RULE = Rule("idle-slots", _find)
