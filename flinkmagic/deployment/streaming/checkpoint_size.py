"""Measures the size of a query's checkpoint, on a thread of its own, when a reader asks for it."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.jvm.contexts import jvm_context
from flinkmagic.jvm.java import is_gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)

LEAST_S = 5.0
"""The time between two counts: a store that is asked over a network may charge for each."""

SHARE = 0.05
"""The part of the time that counts may take: those of a checkpoint with very many files are rarer."""


class CheckpointSize:
    """How many bytes a folder has, as Hadoop's file system of its path adds them up (local files without checksums).

    Whoever asks does not wait: a thread counts, and a later question gets the answer.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._bytes: int | None = None
        self._due = float("-inf")
        self._is_counting = False

    def last(self) -> int | None:
        """Return the last count; None before the first one."""
        with self._lock:
            return self._bytes

    def count(self, folder: str) -> None:
        """Begin to count, unless that was done just before, or is still done; return immediately."""
        with self._lock:
            if self._is_counting or time.monotonic() < self._due:
                return
            self._is_counting = True
        threading.Thread(target=self._count, args=(folder,), name="flinkmagic-checkpoint-size", daemon=True).start()

    def _count(self, folder: str) -> None:
        begun, found = time.monotonic(), None
        try:
            sc = self._spark.sparkContext
            found = int(CLASSES.shared_instance(sc._gateway, "QueryWatch").bytes(folder, jvm_context(sc)))
        except (Py4JError, OSError) as error:  # Spark removes files meanwhile, and the folder of a job that is over
            if not is_gone(self._spark):
                _LOG.info("The files of the checkpoint %s could not be counted: %s", folder, error)
        took = time.monotonic() - begun
        with self._lock:
            self._bytes = self._bytes if found is None else found
            self._due = begun + max(LEAST_S, took / SHARE)
            self._is_counting = False
