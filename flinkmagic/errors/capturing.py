"""What a captured cell may not do, or not here."""

from __future__ import annotations

from flinkmagic.errors.base import UserError


class TopLevelAwaitError(UserError):
    """A captured cell that awaits outside of a function."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(
            f"Line {line} awaits at the top level of a %%flinkgraph cell, which runs as synchronous code. "
            "Await in a cell of its own and use the result here."
        )


class NoResultError(UserError):
    """A program that neither writes nor binds a DataFrame to a name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} has nothing to compute: no DataFrame is written and none is bound to a name. "
            "Write one (df.write.parquet(...)), or give one a name (late = flights.where(...))."
        )


class SparkConnectSessionError(UserError):
    """A Spark Connect session, which has no SparkContext to deploy on."""

    def __init__(self) -> None:
        super().__init__(
            "This is a Spark Connect session: it has no SparkContext in this process, so its stages cannot be "
            "scheduled from here. Use a classic session: SparkSession.builder.master(...).getOrCreate() without "
            "remote()."
        )


class PendingWriteError(UserError):
    """A line touches what an earlier line of the same cell has not written yet.

    Parameters
    ----------
    location, code
        The line that cannot go on, and its text.
    touches
        What it does with the target: ``reads``, ``changes``.
    write_path, write_location
        The pending write.
    """

    def __init__(self, location: object, code: str, touches: str, write_path: str, write_location: object) -> None:
        self.location, self.write_location, self.write_path = location, write_location, write_path
        super().__init__(
            f"{location}: `{code}` {touches} {write_path}, but the write of {write_location} is still pending: the "
            "writes of a cell run together, when its graph is run. Either move this line to another cell and run "
            "the graph first, or use the DataFrame itself that is written there. (With --run, or "
            "%config FlinkMagics.run = True, pending writes are run at such a line.)"
        )


class OverwritesInputError(UserError):
    """A job would overwrite what it reads.

    Parameters
    ----------
    path, location
        What is overwritten, and where that is asked for.
    source, reader
        What is read, and who reads it: a line or a result's name.
    """

    def __init__(self, path: str, location: object, source: str, reader: object) -> None:
        self.path, self.location, self.source, self.reader = path, location, source, reader
        super().__init__(
            f"{location}: the write overwrites {path}, and {reader} reads {source}. Spark deletes what is overwritten "
            "before it reads, so the rows would be lost; nothing has been deleted. Write to another path, or break "
            "the dependency first: df = df.localCheckpoint(). If the read is another query's, run that one in a "
            "cell of its own before."
        )


class OperatorOptionsError(UserError):
    """`with_options` asks for something that has no meaning, or that Spark cannot do.

    Parameters
    ----------
    location, reason
        Where it is asked for, and what is wrong with it.
    """

    def __init__(self, location: object, reason: str) -> None:
        self.location, self.reason = location, reason
        super().__init__(f"{location}: {reason}." if location is not None else f"{reason}.")


class NotCapturedError(UserError):
    """`with_options` outside of a captured cell or block."""

    def __init__(self) -> None:
        super().__init__(
            "with_options marks the operators of a graph, and nothing is captured here. Call it in a %%flinkgraph "
            "cell, or in a `with flinkmagic.capture(spark)` block, on the thread that runs it."
        )


class UndeferrableWriteError(UserError):
    """A write whose command this version of Spark makes only to run it at once."""

    def __init__(self, method: str, version: str, location: object) -> None:
        self.method, self.version, self.location = method, version, location
        super().__init__(
            f"{location}: {method} cannot be deferred with Spark {version}, which makes the command of such a write "
            "only to run it at once; Spark 4.3 is known to make it beforehand. Write it in a plain cell, or write "
            "files: saves to parquet, csv, json, orc and text, and to sources like JDBC, are deferred here too."
        )


class StreamingFrameError(UserError):
    """A streaming DataFrame in a batch job."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} is a streaming DataFrame, and jobs are compiled for batch. Read its source with spark.read, or "
            "start it as a streaming query outside of the cell."
        )
