"""Work that was lost with tasks that failed, or with the executor that held their rows, and was done again.

Source: the column "Failed tasks" of Spark's UI.

Threshold: any, in a job that has finished: if it has not, the failure itself is what is told.

Counter-example: a speculative copy that was ended because the other one was faster.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import count, duration
from flinkmagic.deployment import TaskRecord
from flinkmagic.display.findings import Finding
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.session.findings.facts import JobFacts, took_ms
from flinkmagic.session.findings.rule import Rule

_LOST = ("FetchFailed", "ExecutorLost", "Resubmitted")


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices if job.is_finished else ():
        failed = [task for task in vertex.attempts if _failed(task)]
        again = [task for task in vertex.attempts if _ran_again(task)]
        if not failed and not again:
            continue
        with_executor = any(task.reason.startswith(_LOST) for task in failed)
        yield RULE.finding(
            "; ".join([*_told_failed(failed, with_executor), *_told_again(again)]),
            vertex,
            vertex.first(lambda one: one.calls_python),
            sum(map(took_ms, [*failed, *again])),
            "measured: the time of the attempts that failed, and of those that made lost rows again",
            "measured",
            _MEMORY if with_executor or again else f"%flinkjobs {job.typed_name} --errors  # why they failed",
        )


def _failed(task: TaskRecord) -> bool:
    return (task.state is ExecutionState.FAILED or task.reason == "Resubmitted") and not task.speculative


def _ran_again(task: TaskRecord) -> bool:
    """Return whether it made rows that were lost after another attempt had made them, which had not failed."""
    return task.role == "recovery" and not task.speculative and not _failed(task)


def _told_failed(failed: list[TaskRecord], with_executor: bool) -> Iterator[str]:
    if failed:
        lost = ", lost with their executor" if with_executor else ""
        took = duration(sum(map(took_ms, failed)))
        yield f"{count(len(failed), 'attempt')} of tasks failed after {took} and ran again{lost}"


def _told_again(again: list[TaskRecord]) -> Iterator[str]:
    if again:
        took = duration(sum(map(took_ms, again)))
        yield f"{count(len(again), 'task')} ran again for {took}: their shuffled rows were lost with the executor"


_MEMORY = 'SparkSession.builder.config("spark.executor.memoryOverhead", "1g")  # if it was killed for its memory'

RULE = Rule("failed-tasks", _find)
