"""Runs deferred writes as plain Spark would have run them on their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from flinkmagic.capturing.session_snapshot import read_conf
from flinkmagic.capturing.writes.sparks_errors import sparks_own
from flinkmagic.jvm.java import java_class, session_state

if TYPE_CHECKING:
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite


def write_plainly(write: DeferredWrite) -> None:
    """Run Spark's own command of a write, with the settings of its line.

    Raises
    ------
    PySparkException
        What Spark raises.
    """
    spark: Any = write.df.sparkSession
    state = session_state(spark)
    if read_conf(spark._jsparkSession) != dict(write.session.conf):
        clone = spark._jsparkSession.cloneSession()
        write.session.apply_to(clone.sessionState().conf())
        state = clone.sessionState()
    mode = java_class(spark._jvm, "org.apache.spark.sql.execution.CommandExecutionMode").ALL()
    try:
        state.executePlan(write.command, mode).assertCommandExecuted()
    except Py4JJavaError as error:  # PySpark has not converted it
        raise sparks_own(error) from None
