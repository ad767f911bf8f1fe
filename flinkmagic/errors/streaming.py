"""What goes wrong with streams."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.errors.base import FlinkMagicError, UserError, first_line


class StreamNotStartedError(UserError):
    """A line needs a streaming query that is deferred."""

    def __init__(self, queries: Sequence[str], graph: str | None) -> None:
        self.queries, self.graph = tuple(queries), graph
        how = (
            f"%flinkrun {graph}, or --run on the cell"
            if graph
            else "compile(program, mode='streaming').run(wait=False)"
        )
        super().__init__(f"{', '.join(queries)}: deferred, and not started yet. Run it first: {how}.")


class BatchWriteInStreamError(UserError):
    """A batch write in a cell whose mode is streaming."""

    def __init__(self, location: object) -> None:
        self.location = location
        super().__init__(
            f"{location}: the mode of this cell is streaming, and this line writes a batch: nothing is written. Put it "
            "in a cell of its own, or write each batch of a stream in foreachBatch."
        )


class NoStreamError(UserError):
    """A program of mode streaming that starts no query."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} starts no stream, and its mode is streaming. Start one (df.writeStream.format(...).start()), or "
            "leave the mode at batch."
        )


class StreamModeError(UserError):
    """Streams that are compiled for batch."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} starts streams, and its mode is batch. Compile it with the mode streaming.")


class StreamRestartError(UserError):
    """A query that is to restart from a checkpoint which executors could not read."""

    def __init__(self, name: str, location: object) -> None:
        self.name, self.location = name, location
        super().__init__(
            f"{location}: {name} has no checkpointLocation, and on a cluster no folder of this machine will do to "
            'restart it. Add .option("checkpointLocation", FOLDER), or leave out --restart.'
        )


class StreamingVersionError(UserError):
    """A version of Spark whose streaming plans cannot be read."""

    def __init__(self, version: str, reason: str) -> None:
        self.version = version
        super().__init__(
            f"The plan of a stream cannot be read with Spark {version} ({reason}). Leave out --mode streaming: the "
            "stream then starts on its line."
        )


class BatchFailedError(FlinkMagicError):
    """A batch whose graph did not finish, and no error of Spark's says why."""

    def __init__(self, where: str, cause: BaseException | None) -> None:
        self.where = where
        why = "it was cancelled" if cause is None else f"{type(cause).__name__}: {cause}"
        super().__init__(
            f"{where}: the writes of this batch are not done ({why}). The batch fails, and its checkpoint repeats it."
        )


class BatchStoppedError(UserError):
    """A batch whose query was stopped.

    Spark tells the end of a function's query from a failure by the text of what it raises (``PROXY_ERROR`` of
    ``StreamExecution``, on 3.5.9 and 4.3.0), with a search that overflows its stack where much text follows.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"{where}: the query was stopped, and the batch with it (py4j.protocol.Py4JJavaError: An error occurred "
            "while calling foreachBatch: java.lang.InterruptedException)."
        )


def batch_ran_plainly(query: str, where: str, cause: BaseException) -> str:
    """Return the line about batches that plain Spark writes, because their graph could not be deployed."""
    return f"{where}: batches of {query} run as plain Spark, because their graph could not be deployed {_why(cause)}"


def stream_not_started(query: str, cause: BaseException) -> str:
    """Return the line about a query that Spark has refused to start."""
    return f"{query} has not started ({first_line(cause)})"


def stream_runs_plainly(where: str, cause: BaseException) -> str:
    """Return the line about streams that have started, and of which no graph could be made."""
    return f"{where}: the stream runs as plain Spark, because no graph of it could be made {_why(cause)}"


def _why(cause: BaseException) -> str:
    return f"({first_line(cause)})." + ("" if isinstance(cause, UserError) else " Please report this as a bug.")
