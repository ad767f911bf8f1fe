"""Tells where the time of a vertex's tasks went, and what its operators have measured, in words.

Source: Spark's UI, which divides the time of tasks in the timeline of a stage, and shows SQL metrics at each operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from flinkmagic.amounts import duration, size
from flinkmagic.deployment import TaskRecord
from flinkmagic.display.measures import PARTS, Facts, StageLink, VertexMeasures
from flinkmagic.jvm.java import is_gone
from flinkmagic.planning.stage_metrics import Metrics
from flinkmagic.session.findings.facts import VertexFacts, metric, took_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN: dict[str, Callable[[float], str]] = {
    "timing": duration,
    "nsTiming": lambda value: duration(value / 1e6),
    "size": size,
    "sum": lambda value: f"{value:,}",
}
"""By Spark's kind of a metric, in the order in which they are shown, after the rows; averages are left out: what Spark
hands over is their sum over all tasks."""

_MISNAMED = frozenset({"pythonInitTime"})
"""Not shown. A Python worker that is used again begins with its next task as soon as it is done with the last one
(``daemon.py``), and Spark counts from there: the "time to initialize" it is also that for which nothing was to be done
(`PythonRunner.handleTimingData`). Six seconds between two jobs of four tasks made 21 s of it, and of the others 1 s."""

_ORDER = {kind: place for place, kind in enumerate(_SHOWN)}
_ROWS = "number of output rows"


def spark_ui(spark: SparkSession) -> str | None:
    """Return where the UI of a session is; None if it has none, or has been stopped."""
    return None if is_gone(spark) else spark.sparkContext.uiWebUrl


def vertex_measures(vertex: VertexFacts, ui_url: str | None) -> VertexMeasures:
    """Return the measures of a vertex, of which a task has run."""
    operators = {one.id: told for one in vertex.operators if (told := _words(one.metrics, vertex.words))}
    return VertexMeasures(
        parts=time_parts(vertex),
        facts=_task_facts(vertex),
        operators=operators,
        above=_words(vertex.metrics_above, vertex.words),
        stages=_links(vertex.attempts, ui_url),
    )


def time_parts(vertex: VertexFacts) -> dict[str, float]:
    """Return where the time of a vertex's tasks went, in milliseconds, by the names of `PARTS`; they add up to it.

    Garbage is collected while something else is done, and Spark's clocks of Python workers and of sorts run beside
    each other: each takes no more than the others, and waiting, have left of the time on executors.
    """
    tasks = vertex.tasks
    python = sum(metric(one.metrics, "pythonTotalTime") for one in vertex.operators if one.calls_python)
    beside = {
        "shuffle read wait": sum(task.fetch_wait_ms or 0 for task in tasks),
        "shuffle write": sum(task.shuffle_write_ms or 0 for task in tasks),
        "garbage collection": sum(task.gc_ms or 0 for task in tasks),
        "Python": python,
        "sorting": sum(metric(one.metrics, "sortTime") for one in vertex.operators),
    }
    left = vertex.run_ms
    parts: dict[str, float] = {}
    for name, ms in beside.items():
        parts[name] = min(float(ms), left)
        left -= parts[name]
    parts["computing"] = left
    serialization = sum(task.serialization_ms or 0 for task in tasks)
    parts["serialization"] = float(serialization)
    parts["scheduler delay"] = max(0.0, sum(map(took_ms, tasks)) - vertex.run_ms - serialization)
    finished = {task.task_id for task in tasks}
    parts["lost attempts"] = sum(took_ms(one) for one in vertex.attempts if one.task_id not in finished)
    return {name: parts[name] for name in PARTS if parts[name] > 0}


def _task_facts(vertex: VertexFacts) -> Facts:
    def total(of: str) -> int:
        return sum(getattr(task, of) or 0 for task in vertex.tasks)

    facts = {
        "results sent to the driver": total("result_bytes"),
        "spilled (memory)": total("memory_spilled_bytes"),
        "spilled (disk)": total("disk_spilled_bytes"),
        "peak execution memory": max((task.peak_memory_bytes or 0 for task in vertex.tasks), default=0),
    }
    return tuple((name, size(value)) for name, value in facts.items() if value)


def _words(metrics: Metrics, words: Mapping[str, tuple[str, str]]) -> Facts:
    named = [(*words[name], value) for name, value in metrics.items() if name in words and name not in _MISNAMED]
    shown = sorted(
        (one for one in named if one[1] in _SHOWN), key=lambda one: (one[0] != _ROWS, _ORDER[one[1]], one[0])
    )
    return tuple((called, _SHOWN[kind](value)) for called, kind, value in shown)


def _links(attempts: Iterable[TaskRecord], ui_url: str | None) -> tuple[StageLink, ...]:
    if ui_url is None:
        return ()
    stages = sorted({(task.stage, task.stage_attempt) for task in attempts if task.stage >= 0})
    return tuple(
        StageLink(
            f"stage {stage}{f', attempt {attempt + 1}' if attempt else ''}",
            f"{ui_url}/stages/stage/?id={stage}&attempt={attempt}",
        )
        for stage, attempt in stages
    )
