"""Hooks `DataFrame.randomSplit`, and persists what is split where no job spans its parts.

What is persisted is the DataFrame under a filter that is always true and names this use of it: Spark finds cached rows
by an equal plan, and would otherwise serve them, unasked, to every equal query of the session. Catalyst removes the
filter; Spark's checks of writes still see the sources behind it, which rows would hide. The rows are released with the
DataFrames for which they were persisted.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from flinkmagic.capturing.call_arguments import Args, Kwargs
from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.hooks.call_hooks import LazyCall
from flinkmagic.capturing.lineage import Selected
from flinkmagic.capturing.writes.sparks_errors import withheld_log
from flinkmagic.jvm.java import execution_of, query_execution

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.recorder import Recorder


class RandomSplit(LazyCall):
    """`randomSplit`: what is split is computed once for all parts, or rows may be in several of them or in none.

    Where lines run immediately, the parts must be those of plain Spark. Rows of an adaptive plan are not persisted:
    Spark merges partitions of what it shuffles, those of kept rows otherwise than those of a part's query, and a part's
    rows depend on them (seen on 4.3.0; 3.5.9 merges none of kept rows).
    """

    def arguments(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        if recorder.mode is CaptureMode.LINES and args and not args[0].isStreaming and not _is_adaptive(args[0]):
            shared, _ = persisted(args[0])
            args = (shared, *args[1:])
        return args, kwargs

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        result = super().after(recorder, args, kwargs, result)
        if recorder.mode is not CaptureMode.LINES:
            for number, part in enumerate(result, start=1):
                recorder.calls.select(args[0], part, Selected(names=(f"part {number} of {len(result)}",)))
        return result


def _is_adaptive(df: DataFrame) -> bool:
    """Return whether Spark plans a DataFrame anew while it runs, or cannot plan it: its own line says why then."""
    try:
        with withheld_log():
            # Planned for itself: the DataFrame's own plan, which is made once, follows the settings of a later line.
            execution = execution_of(df)
            planned = query_execution(
                df.sparkSession._jvm, execution.sparkSession().sessionState(), execution.analyzed()
            )
            return str(planned.executedPlan().getClass().getSimpleName()) == "AdaptiveSparkPlanExec"
    except (Py4JError, PySparkException):
        return True


_persisted: list[tuple[JavaObject, DataFrame]] = []
"""What is persisted, each with a weak reference to the plan over which its selections are defined."""


def persisted(df: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return a DataFrame with the same rows, which are kept once they are computed, and the one that keeps them."""
    _release_unused()
    mark = F.lit(f"split {uuid.uuid4().hex}").isNotNull()
    shared, kept = df.where(mark), df.where(mark)
    kept.persist()
    jvm = df.sparkSession._jvm
    assert jvm is not None
    weak = jvm.java.lang.ref.WeakReference
    _persisted.append((weak(execution_of(shared).analyzed()), kept))
    return shared, kept


def _release_unused() -> None:
    """Release the rows of which the JVM has collected all that was made of them."""
    living = [(plan, kept) for plan, kept in _persisted if kept.sparkSession.sparkContext._jsc is not None]
    _persisted[:] = [(plan, kept) for plan, kept in living if plan.get() is not None]
    for one in living:
        if one not in _persisted:
            one[1].unpersist()
