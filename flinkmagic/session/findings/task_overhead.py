"""Estimates the cost of launching tasks that have little to do."""

from __future__ import annotations

from flinkmagic.session.findings.facts import JobFacts, VertexFacts, median, took_ms

MANY = 16
"""So many tasks for each slot are many: Spark's guide to tuning recommends two or three for each core."""

TINY_MS = 100.0
"""A median task below it is tiny; Spark's guide says that tasks of 200 ms and more pay."""


def overhead_ms(job: JobFacts, vertex: VertexFacts) -> float:
    """Return the slots' time that a vertex's launches took, beyond that of four tasks a slot; 0 if none are tiny.

    It is what a task took from its launch to its end beside its run on the executor, and the time for which slots
    were empty while tasks were still to be launched.
    """
    tasks = vertex.tasks
    if len(tasks) < MANY * job.slots or median(map(took_ms, tasks)) >= TINY_MS:
        return 0.0
    launching = sum(max(0.0, took_ms(task) - (task.run_ms or 0)) for task in tasks)
    between = job.idle_ms(vertex.start_ms, max(task.start_ms for task in tasks))
    return (launching + between) * (1 - 4 * job.slots / len(tasks))
