"""Work that was lost with tasks that failed, and was done again.

Source: the column "Failed tasks" of Spark's UI.

Threshold: any, in a job that has finished: if it has not, the failure itself is what is told.

Counter-example: a speculative copy that was ended because the other one was faster.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import count, duration
from flinkmagic.deployment import TaskRecord
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.session.findings.facts import JobFacts, took_ms
from flinkmagic.session.findings.finding import Finding, Rule

_LOST = ("FetchFailed", "ExecutorLost", "Resubmitted")


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices if job.is_finished else ():
        failed = [task for task in vertex.attempts if _was_in_vain(task)]
        if not failed:
            continue
        lost_ms = sum(map(took_ms, failed))
        with_executor = any(task.reason.startswith(_LOST) for task in failed)
        yield RULE.finding(
            f"{count(len(failed), 'attempt')} of tasks failed after {duration(lost_ms)} and ran again"
            f"{', lost with their executor' if with_executor else ''}",
            vertex,
            vertex.first(lambda one: one.calls_python),
            lost_ms,
            "measured: the time of the attempts that failed",
            "measured",
            _MEMORY if with_executor else _ERRORS,
        )


def _was_in_vain(task: TaskRecord) -> bool:
    ended_badly = task.state is ExecutionState.FAILED or task.reason == "Resubmitted"
    return (ended_badly or task.role == "recovery") and not task.speculative


_MEMORY = 'SparkSession.builder.config("spark.executor.memoryOverhead", "1g")  # if it was killed for its memory'
_ERRORS = "%flinkjobs NAME --errors  # why they failed"

RULE = Rule("failed-tasks", _find)
