"""Prepares what the first action of a session needs, before anybody waits for it.

Our Java classes are compiled in the session's driver, and our modules imported, when they are first needed: for the
first action all of them, one after the other. What Python and the JVM then run for the first time takes as long as the
rest of a small action: whoever knows that nobody waits may `rehearse` one.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from flinkmagic.capturing.capture_listener import ActionCall
from flinkmagic.capturing.driver import java_classes as of_capturing
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.source_code.source_location import SourceLocation
from flinkmagic.deployment import java_classes as of_deployment
from flinkmagic.errors.deployment import DriverClassesRefusedError
from flinkmagic.errors.durable import DamagedError
from flinkmagic.jvm.contexts import jvm_context, kept_for_context
from flinkmagic.options import NO_RETENTION, JobOptions
from flinkmagic.planning import java_classes as of_planning
from flinkmagic.reuse import java_classes as of_reuse
from flinkmagic.reuse.compiler_directives import leave_to_c1
from flinkmagic.reuse.durable_store import durable_store
from flinkmagic.reuse.generated_code import keep_generated_code
from flinkmagic.reuse.retained_results import retained_results
from flinkmagic.session.actions.keeping_budget import KeepingBudget

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from flinkmagic.reuse.durable_store import DurableStore

_LOG = logging.getLogger(__name__)

_REHEARSAL = "flinkmagic makes the session ready"
"""What Spark's UI says of the jobs, and the name of their graphs."""

_ROWS = 1_000

REREADS = 6
"""How many actions read the same DataFrame.

Seen on two cores: of ten of them the first took 0.4 s, the fifth and all others 0.2 s.
"""


def warm_up(spark: SparkSession | None, options: JobOptions | None = None) -> threading.Thread:
    """Begin to prepare a session for actions, once for each SparkContext; return the thread that does it.

    It changes nothing in the session, and starts no Spark job unless there are stored rows to read: then a small one.
    What fails here fails again, and is reported, when it is needed. If there is no session yet, modules are imported:
    while a JVM starts, Python has nothing to do.

    Parameters
    ----------
    options : JobOptions, optional
        Those of the actions: what a durable store takes is prepared as well.
    """
    if spark is None:
        return _started(_import)
    warming = _warming(spark.sparkContext)
    if options is None or not options.durable:
        return warming
    store = durable_store(options.durable, options.durable_bytes)
    of_stores = _warming_stores(spark.sparkContext)
    if store not in of_stores:
        of_stores[store] = _started(_make_store_ready, spark, store, warming)
    return of_stores[store]


def needs_rehearsal(spark: SparkSession) -> bool:
    """Return whether no action was made on a SparkContext, and not all were rehearsed."""
    return _rehearsal(spark.sparkContext).is_due


def rehearse(spark: SparkSession, is_late: Callable[[], bool] = lambda: False) -> threading.Thread:
    """Begin to carry out the small actions that are left to rehearse on a SparkContext; return the thread that does it.

    They count rows that they make, in Spark jobs, and leave nothing. On a cluster none is carried out: somebody pays
    for the tasks. What fails here fails again, and is reported, when it is needed.

    Parameters
    ----------
    is_late : callable, optional
        Whether somebody may wait by now: then no further action is begun.
    """
    sc = spark.sparkContext
    rehearsal = _rehearsal(sc)
    # Its jobs would end those that make stores ready.
    return _started(rehearsal.go_on, spark, [_warming(sc), *_warming_stores(sc).values()], is_late)


@kept_for_context
def _warming(sc: SparkContext) -> threading.Thread:
    return _started(_make_ready, sc)


@kept_for_context
def _warming_stores(sc: SparkContext) -> dict[DurableStore, threading.Thread]:
    return {}


@kept_for_context
def _rehearsal(sc: SparkContext) -> _Rehearsal:
    return _Rehearsal(sc)


def _started(target: Callable[..., None], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, name="flinkmagic-warm-up", daemon=True)
    thread.start()
    return thread


def _import() -> None:
    for name in ("session_actions", "session_writes"):
        importlib.import_module(f"flinkmagic.session.actions.{name}")


class _Rehearsal:
    """The actions that are rehearsed on a SparkContext, once each.

    The first one is planned as plain Spark does. The others read one DataFrame, as a session's do: its rows are kept.
    """

    def __init__(self, sc: SparkContext) -> None:
        self._sc = sc
        self._left = 1 + REREADS
        self._lock = threading.Lock()

    @property
    def is_due(self) -> bool:
        return self._left > 0 and not KeepingBudget.of(self._sc).plain

    def go_on(self, spark: SparkSession, before: Sequence[threading.Thread], is_late: Callable[[], bool]) -> None:
        for thread in before:
            thread.join()
        with self._lock:
            try:
                # Later it would see jobs of its own: Spark tells of a job's end with a delay.
                is_busy = bool(self._sc.statusTracker().getActiveJobsIds())
                if self.is_due and not is_busy and jvm_context(self._sc).isLocal():
                    self._carry_out(spark, lambda: is_late() or not self.is_due)
            except Exception as error:  # noqa: BLE001 - no line of the user's depends on it
                self._left = 0
                _LOG.debug("no action is rehearsed: %s", error)

    def _carry_out(self, spark: SparkSession, is_late: Callable[[], bool]) -> None:
        from flinkmagic.session.actions.asked_answers import asked
        from flinkmagic.session.actions.kept_frames import KeptFrames
        from flinkmagic.session.actions.session_actions import SessionActions

        # The session's own have one thread.
        frames = KeptFrames(KeepingBudget())
        rows = spark.range(0, _ROWS, 1, 2).selectExpr("id", "sha2(CAST(id AS string), 256) AS text")
        shuffled = rows.repartition(2, "text")
        line = SourceLocation("flinkmagic", "", 1, _REHEARSAL)
        is_read = False
        try:
            while not is_late():
                options = None
                if self._left > REREADS:
                    asks, options = rows.groupBy("id").count(), JobOptions(retain=NO_RETENTION)
                else:
                    asks, is_read = shuffled.where(f"id % {self._left} = 0") if is_read else shuffled, True
                self._left -= 1
                call = ActionCall("count", asks, (), {}, _not_plainly, line, _REHEARSAL, lambda: Program(spark))
                asked(call)
                SessionActions(options, frames=frames, graph_name=_REHEARSAL).carry_out(call)
        finally:
            retained_results(self._sc).drop(lambda result: result.graph == _REHEARSAL)


def _not_plainly(*_: Any) -> None:
    raise NotImplementedError("what plain Spark does is not rehearsed")


def _make_store_ready(spark: SparkSession, store: DurableStore, before: threading.Thread) -> None:
    before.join()
    from flinkmagic.reuse.durable_keys import durable_keys
    from flinkmagic.reuse.durable_rows import durable_rows

    try:
        durable_keys(spark.sparkContext)
        rows = durable_rows(spark.sparkContext, store)
        if rows is not None:
            rows.rehearse(spark._jsparkSession, _REHEARSAL)
    except (DamagedError, DriverClassesRefusedError, OSError, Py4JError, PySparkException) as error:
        _LOG.debug("stored results are not made ready: %s", error)


def _make_ready(sc: SparkContext) -> None:
    try:
        leave_to_c1(sc)
        _import()
        keep_generated_code(sc)
        # In the order in which an action asks for them.
        for package in (of_capturing, of_planning, of_reuse, of_deployment):
            package.CLASSES.compile_all(sc._gateway)
    except (DriverClassesRefusedError, Py4JError, OSError) as error:
        _LOG.debug("the session is not made ready for actions: %s", error)
