"""Reads and copies the Java half of a `DataStreamWriter`, and catches the call that would start the query.

Spark keeps the settings in private fields of the writer (seen on 3.5.9 and 4.3.0); a writer may be changed, and started
again, after the call that is deferred.
"""

from __future__ import annotations

from typing import Any

from flinkmagic.capturing.writes.writer_calls import StandIn, writer_field
from flinkmagic.jvm.java import execution_of, java_array, java_class

_STATIC_OR_FINAL = 0x0008 | 0x0010
"""``java.lang.reflect.Modifier``."""


class DeferringStreamWriter(StandIn):
    """Replaces a Java ``DataStreamWriter`` while `start` or `toTable` of PySpark runs."""

    def __init__(self, jwrite: Any) -> None:
        super().__init__(jwrite)
        self.call: tuple[str, tuple[Any, ...]] | None = None
        """The method that would have started the query, and its arguments."""

    def start(self, *path: str) -> None:
        self.call = ("start", path)

    def toTable(self, name: str) -> None:  # noqa: N802 - Spark's name
        self.call = ("toTable", (name,))


def writer_options(jwrite: Any, *names: str) -> list[str]:
    """Return options of a writer; one that is not set is empty."""
    options = writer_field(jwrite, "extraOptions")
    found = [options.get(name) for name in names]
    return [str(one.get()) if one.isDefined() else "" for one in found]


def check_operations(jvm: Any, df: Any, jwrite: Any) -> None:
    """Let Spark refuse what no streaming query can do, as it does when one starts."""
    conf = df._jdf.sparkSession().sessionState().conf()
    if conf.isUnsupportedOperationCheckEnabled():
        checker = java_class(jvm, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker")
        checker.checkForStreaming(execution_of(df).analyzed(), writer_field(jwrite, "outputMode"))


def copied(jvm: Any, df: Any, jwrite: Any) -> Any:
    """Return a Java writer with the same settings, which later changes of the first one leave alone."""
    jclass = jwrite.getClass()
    copy = jclass.getDeclaredConstructors()[0].newInstance(java_array(jvm, df._jdf))
    while jclass is not None and jclass.getName() != "java.lang.Object":
        for field in jclass.getDeclaredFields():
            if not field.getModifiers() & _STATIC_OR_FINAL:
                field.setAccessible(True)
                field.set(copy, field.get(jwrite))
        jclass = jclass.getSuperclass()
    return copy
