"""What goes wrong with streams."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.errors.base import FlinkMagicError, UserError, first_line


class StreamNotStartedError(UserError):
    """A line needs a streaming query that is deferred."""

    queries: Sequence[str]
    graph: str | None

    def __str__(self) -> str:
        how = (
            f"%flinkrun {self.graph}, or --run on the cell"
            if self.graph
            else "compile(program, mode='streaming').run(wait=False)"
        )
        return f"{', '.join(self.queries)}: deferred, and not started yet. Run it first: {how}."


class BatchWriteInStreamError(UserError):
    """A batch write in a cell whose mode is streaming."""

    location: object

    template = (
        "{location}: the mode of this cell is streaming, and this line writes a batch: nothing is written. Put it "
        "in a cell of its own, or write each batch of a stream in foreachBatch."
    )


class NoStreamError(UserError):
    """A program of mode streaming that starts no query."""

    name: str

    template = (
        "{name!r} starts no stream, and its mode is streaming. Start one (df.writeStream.format(...).start()), or "
        "leave the mode at batch."
    )


class StreamModeError(UserError):
    """Streams that are compiled for batch."""

    name: str

    template = "{name!r} starts streams, and its mode is batch. Compile it with the mode streaming."


class StreamRestartError(UserError):
    """A query that is to restart from a checkpoint which executors could not read."""

    name: str
    location: object

    template = (
        "{location}: {name} has no checkpointLocation, and on a cluster no folder of this machine will do to "
        'restart it. Add .option("checkpointLocation", FOLDER), or leave out --restart.'
    )


class StreamingVersionError(UserError):
    """A version of Spark whose streaming plans cannot be read."""

    version: str
    reason: str

    template = (
        "The plan of a stream cannot be read with Spark {version} ({reason}). Leave out --mode streaming: the "
        "stream then starts on its line."
    )


NO_INCREMENTAL_EXECUTION = "it has no IncrementalExecution"
"""Why not, if Spark has renamed or moved what makes the plan."""


class BatchFailedError(FlinkMagicError):
    """A batch whose graph did not finish, and no error of Spark's says why."""

    where: str
    cause: BaseException | None

    def __str__(self) -> str:
        why = "it was cancelled" if self.cause is None else f"{type(self.cause).__name__}: {self.cause}"
        failed = f"{self.where}: the writes of this batch are not done ({why})"
        return f"{failed}. The batch fails, and its checkpoint repeats it."


class BatchStoppedError(UserError):
    """A batch whose query was stopped.

    Spark tells the end of a function's query from a failure by the text of what it raises (``PROXY_ERROR`` of
    ``StreamExecution``, on 3.5.9 and 4.3.0), with a search that overflows its stack where much text follows.
    """

    where: str

    template = (
        "{where}: the query was stopped, and the batch with it (py4j.protocol.Py4JJavaError: An error occurred "
        "while calling foreachBatch: java.lang.InterruptedException)."
    )


def stream_not_started(query: str, cause: BaseException) -> str:
    """Return the line about a query that Spark has refused to start."""
    return f"{query} has not started ({first_line(cause)})"


def stream_runs_plainly(where: str, cause: BaseException) -> str:
    """Return the line about streams that have started, and of which no graph could be made."""
    bug = "" if isinstance(cause, UserError) else " Please report this as a bug."
    return f"{where}: the stream runs as plain Spark, because no graph of it could be made ({first_line(cause)}).{bug}"
