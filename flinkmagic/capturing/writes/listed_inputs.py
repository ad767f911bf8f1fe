"""Finds files that a pending write's DataFrames listed, and that have changed by the time it runs.

A DataFrame over files holds their list from when it was made. If a file has changed since then, Spark reads it up to
its old length, or reads what has taken its name: rows that the plain cell, which writes on that line, would not have
written.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from typing import Any

from pyspark import SparkContext

from flinkmagic.capturing.driver.java_classes import CLASSES
from flinkmagic.capturing.writes.deferred_write import DeferredWrite
from flinkmagic.capturing.writes.pruned_reads import pruned_sources
from flinkmagic.capturing.writes.targets import resolve_uri
from flinkmagic.errors.capturing import InputChangedError, InputChangedWarning
from flinkmagic.jvm.java import session_state


def check_inputs(writes: Iterable[DeferredWrite]) -> None:
    """Make sure that no write runs on files that have changed since its line.

    What had changed before the write's own line, the plain cell would have read, too: the user is warned of that.

    Raises
    ------
    InputChangedError
        If a listed file is gone, or was modified after the write's line.
    """
    reader = None
    for write in writes:
        if not any(source.listed for source in write.sources):
            continue
        reader = reader or CLASSES.new_instance(SparkContext._gateway, "ListedInputs")
        conf = session_state(write.df.sparkSession).newHadoopConf()
        plan = write.df._jdf.queryExecution().analyzed()
        changed = json.loads(reader.changed(plan, conf))
        for file in changed and _that_are_read(write, changed):
            if file["modified"] is None or file["modified"] >= write.taken_at_ms:
                raise InputChangedError(
                    write.facts.label, write.location, file["path"], is_gone=file["modified"] is None
                )
            warnings.warn(InputChangedWarning(write.facts.label, write.location, file["path"]), stacklevel=2)


def _that_are_read(write: DeferredWrite, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the listed files of a write that its query reads: not those of partitions that a filter excludes."""
    pruned = pruned_sources(write.df) if write.pruned is None else write.pruned
    if pruned is None:
        return files
    read = {source.path for source in pruned}
    return [
        file
        for file in files
        if resolve_uri(file["path"].rpartition("/")[0]) in read or resolve_uri(file["path"]) in read
    ]
