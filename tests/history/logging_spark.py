"""Lets a running Spark write the event log of a piece of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP_ID = "app-logged"


@contextmanager
def logged(spark: SparkSession, folder: Path, **conf: str) -> Iterator[None]:
    """Write what Spark does into an event log in a folder, by Spark's own listener.

    Parameters
    ----------
    **conf : str
        Settings below ``spark.eventLog.``, with underscores for dots.
    """
    sc = spark.sparkContext
    jvm, context = sc._jvm, sc._jsc.sc()
    settings = context.getConf().clone().set("spark.eventLog.rolling.enabled", "false")
    settings = settings.set("spark.eventLog.compress", "false")
    for name, value in conf.items():
        settings.set(f"spark.eventLog.{name.replace('_', '.')}", value)
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        APP_ID, jvm.scala.Option.empty(), jvm.java.net.URI(folder.as_uri()), settings, context.hadoopConfiguration()
    )
    folder.mkdir(parents=True, exist_ok=True)
    listener.start()
    context.addSparkListener(listener)
    try:
        yield
        context.listenerBus().waitUntilEmpty()
    finally:
        context.removeSparkListener(listener)
        listener.stop()
