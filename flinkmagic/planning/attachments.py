"""What Spark has already shipped to its executors: the libraries and files that travel with a job's graphs.

Read from the driver's `SparkContext` (``listJars``, ``listFiles``, ``listArchives``; seen on 3.5.9 and 4.3.0).
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flinkmagic.graph.job_settings import JobSettings

if TYPE_CHECKING:
    from pyspark import SparkContext


def job_settings(sc: SparkContext) -> JobSettings:
    """The attachments of a session, as Flink's job graph carries them.

    Flink's blob keys are the addresses of Spark's own file server, from which executors fetch what they lack.
    """
    context = sc._jsc.sc()
    jars = _lines(context.listJars())
    artifacts = (*_lines(context.listFiles()), *_lines(context.listArchives()))
    return JobSettings(
        user_jars=tuple(map(_name, jars)),
        classpath=jars,
        user_artifacts={_name(address): address for address in artifacts},
        blob_keys=(*jars, *artifacts),
    )


def _lines(addresses: Any) -> tuple[str, ...]:
    text: str = addresses.mkString("\n")
    return tuple(sorted(text.splitlines()))


def _name(address: str) -> str:
    return PurePosixPath(urlsplit(address).path).name
