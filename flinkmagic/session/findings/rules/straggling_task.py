"""A task that takes far longer than the others without having more to do: its host is slow, or its rows are.

Source: Spark's speculation (``spark.speculation.multiplier``: 1.5 times the median up to 3.5, 3 from 4.0 on).

Threshold: the last task took twice the median of the others and a second more, without the start of Python workers for
which the others cannot have waited, and read at most half as much again. It is the host's fault if all tasks of the
executor were as slow.

Counter-example: a task with more rows is a skewed partition. A slow task that ends before the others costs nothing. Of
two tasks one finds a Python worker, and the other one waits until its own has started and has imported what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import duration
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, VertexFacts, median, took_ms
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.slowest import SLOW, SlowestTask, slowest_task

AS_MUCH = 1.5
LONG_MS = 1000.0
"""How much longer it must take than the median: the first task of a stage pays for what the JVM compiles."""


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        slow = slowest_task(job, vertex)
        if slow is None or slow.load > AS_MUCH:
            continue
        if took_ms(slow.task) - slow.typical_ms - _start_of_python_ms(vertex, slow) < LONG_MS:
            continue
        is_host = _is_of_host(vertex, slow)
        which = f"the tasks on executor {slow.task.executor}" if is_host else f"subtask {slow.task.subtask + 1}"
        yield RULE.finding(
            f"{which} took {slow.times:.1f} times as long as the others with no more to read "
            f"({duration(took_ms(slow.task))}, median {duration(slow.typical_ms)})",
            vertex,
            vertex.first(lambda one: one.calls_python),
            slow.idle_ms,
            "measured: the time for which slots idled after the vertex's other tasks",
            "likely",
            _SPECULATE if is_host else _LOOK.format(task=slow.task.task_id),
        )


def _start_of_python_ms(vertex: VertexFacts, slow: SlowestTask) -> float:
    """Return the least for which the slowest task waited for Python: Spark measures it for all tasks together."""
    others_ms = sum(took_ms(task) for task in vertex.tasks if task is not slow.task)
    return max(0.0, sum(one.start_of_python_ms for one in vertex.operators) - others_ms)


def _is_of_host(vertex: VertexFacts, slow: SlowestTask) -> bool:
    own = [took_ms(task) for task in vertex.tasks if task.executor == slow.task.executor]
    others = [took_ms(task) for task in vertex.tasks if task.executor != slow.task.executor]
    return len(own) > 1 and len(others) > 1 and median(own) >= SLOW * median(others)


_SPECULATE = 'SparkSession.builder.config("spark.speculation", "true")  # Spark then runs slow tasks a second time'
_LOOK = (
    "job.tasks()  # task {task}: what do its rows make the function do? With spark.speculation a slow host is avoided"
)

RULE = Rule("straggling-task", _find)
