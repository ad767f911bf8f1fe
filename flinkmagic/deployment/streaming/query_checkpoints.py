"""Makes checkpoint folders for queries that have none."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from flinkmagic.errors.streaming import StreamRestartError

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.capturing.streams.deferred_stream import DeferredStream

_LOG = logging.getLogger(__name__)
_TRIES = 20
_PAUSE_S = 0.1


class QueryCheckpoints:
    """Keeps what a query has done over the restarts of its job; at the job's end nothing of it remains.

    A query whose sink begins empty with each start (memory, unless its mode is complete) gets a new folder each time:
    it starts over, and its table has exact rows. On a cluster Spark makes the folder, and such a query is not
    restarted.

    Raises
    ------
    StreamRestartError
        If it has no checkpoint location, and executors cannot read this machine's folders to restart it.
    """

    def __init__(self, stream: DeferredStream, sc: SparkContext, *, restarts: bool) -> None:
        self._stream = stream
        self._is_local = (sc.master or "").startswith("local")
        self._made: list[Path] = []
        if restarts and not stream.checkpoint and not self._is_local:
            raise StreamRestartError(stream.name, stream.location)

    def folder(self) -> str | None:
        """Return the folder for the next start of the query; None if it has one, or Spark makes, or demands, one."""
        if self._stream.checkpoint or not self._is_local or not self._stream.is_scratch:
            return None
        if self._stream.starts_over or not self._made:
            self._made.append(Path(tempfile.mkdtemp(prefix="flinkmagic-query-")))
        return self._made[-1].as_uri()

    def remove(self) -> None:
        """Remove what was made; a task that Spark has just ended may still write there for a moment."""
        for folder in self._made:
            for _ in range(_TRIES):
                shutil.rmtree(folder, ignore_errors=True)
                if not folder.exists():
                    break
                time.sleep(_PAUSE_S)
            else:
                _LOG.warning("The folder %s of a query that is over could not be removed.", folder)
        self._made.clear()
