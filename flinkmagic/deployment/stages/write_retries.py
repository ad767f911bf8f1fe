"""Runs a write again after a failed attempt, but only if that yields what one attempt would have.

Spark does not support this. A failed attempt may have left an empty folder (then `errorifexists` would refuse the next
one and `ignore` would silently do nothing), or, if the commit itself failed, some of its files (then `append` would
write rows twice). One of its tasks that ended after the attempt was given up may have put its files where Hadoop's
committer takes them for the next attempt's. Commands of 3.5.9 and 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkmagic.errors.deployment import WriteNotRepeatableError
from flinkmagic.jvm.java import simple_name

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_PENDING = "_temporary"
"""Hadoop's `FileOutputCommitter.PENDING_DIR_NAME`: where tasks commit to; Spark aborts a job by deleting it."""

_COMMIT_ALGORITHM = "mapreduce.fileoutputcommitter.algorithm.version"


@dataclass(frozen=True)
class EarlierRun:
    """How far an earlier run of the same stage came."""

    launched: bool
    """Whether Spark launched any of its tasks: then it had accepted the path."""
    reached_commit: bool
    """Whether all of its tasks succeeded, so that the driver's commit is what failed."""
    counted: frozenset[int] = frozenset()
    """The subtasks of which a task succeeded before Spark gave the stage up, in this run or an earlier one."""


def prepare_write_retry(sc: SparkContext, plan: JavaObject, name: str, earlier: EarlierRun) -> None:
    """Remove what an earlier attempt has left and never committed, or refuse to repeat the write.

    None of its tasks may still run.

    Raises
    ------
    WriteNotRepeatableError
        If a second attempt might write rows twice, or silently nothing.
    """
    if not earlier.launched:
        return
    command = plan.cmd() if simple_name(plan) == "DataWritingCommandExec" else None
    if command is None or simple_name(command) != "InsertIntoHadoopFsRelationCommand":
        raise WriteNotRepeatableError(name, "it does not go to files, and what a first attempt did cannot be seen")
    mode, path, hadoop = command.mode().toString(), command.outputPath(), sc._jsc.hadoopConfiguration()
    if mode == "Append" and earlier.reached_commit:
        raise WriteNotRepeatableError(name, "its commit failed, and some of its rows may be there already")
    if mode == "Append" and hadoop.get(_COMMIT_ALGORITHM, "1") != "1":
        raise WriteNotRepeatableError(name, f"{_COMMIT_ALGORITHM} lets tasks write to the target before the commit")
    files = path.getFileSystem(hadoop)
    assert sc._jvm is not None
    files.delete(sc._jvm.org.apache.hadoop.fs.Path(path, _PENDING), True)
    if mode in ("Append", "Overwrite") or not files.exists(path):
        return
    if len(files.listStatus(path)) > 0:
        raise WriteNotRepeatableError(name, f"its first attempt left files in {path.toString()}")
    files.delete(path, False)
