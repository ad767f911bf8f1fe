"""Facts of jobs that never ran, for rules to look at."""

from __future__ import annotations

from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from flinkmagic.deployment import TaskRecord
from flinkmagic.display.findings import Finding
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.session.findings import find as findings
from flinkmagic.session.findings.facts import InputFacts, JobFacts, OperatorFacts, VertexFacts


def task(subtask: int, start_s: float, took_s: float, **more: Any) -> TaskRecord:
    """A task that ran all of its time."""
    known: dict[str, Any] = {
        "vertex_id": "v", "vertex": "Vertex", "subtask": subtask, "attempt": 0, "state": ExecutionState.FINISHED,
        "slot": "1_0", "executor": "1", "start_ms": 1000 * start_s, "end_ms": 1000 * (start_s + took_s),
        "run_ms": round(1000 * took_s), "rows_in": 1000, "bytes_in": 1 << 20,
    }  # fmt: skip
    return TaskRecord(**{**known, **more})


def operator(kind: str, id: int = 1, line: int = 5, **more: Any) -> OperatorFacts:
    """An operator of a line."""
    return OperatorFacts(id=id, kind=kind, operator=kind.removesuffix("Exec"), cell="cell 3", line=line, **more)


def vertex(*attempts: TaskRecord, id: str = "v", reads: str = "", of: str = "", **more: Any) -> VertexFacts:
    """A vertex; `reads` is the partitioner by which it reads the vertex `of`."""
    inputs = (InputFacts(of, reads, 1, 0),) if reads else ()
    return VertexFacts(**{"id": id, "name": id.upper(), "inputs": inputs, "attempts": attempts, **more})


def job(*vertices: VertexFacts, slots: int = 2, **more: Any) -> JobFacts:
    """A job that lasts as long as its vertices do."""
    ended = max(one.end_ms for one in vertices)
    return JobFacts(**{"vertices": vertices, "started_ms": 0.0, "ended_ms": ended, "slots": slots, **more})


def find(facts: JobFacts) -> tuple[Finding, ...]:
    """What is found, with cures that can be pasted as they are."""
    told = findings.find(facts)
    for one in told:
        compile(TransformerManager().transform_cell(one.cure), one.rule, "exec")
    return told


def found(facts: JobFacts) -> list[str]:
    """The rules that find something."""
    return [one.rule for one in find(facts)]
