"""What a captured cell may not do, or may not do in this place."""

from __future__ import annotations

from flinkmagic.errors.base import FlinkMagicError, UserError


class TopLevelAwaitError(UserError):
    """A captured cell that awaits outside a function."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(
            f"Line {line} awaits at the top level, and what called %%flinkgraph cannot await: another cell magic, or "
            "run_cell_magic. Make %%flinkgraph the cell's first line, or await in a separate cell."
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
        ways = ["move this line to another cell and run the graph first"]
        if touches == "reads":
            ways.append("use the DataFrame itself that is written there")
        super().__init__(
            f"{location}: `{code}` {touches} {write_path}, but the write of {write_location} is still pending: the "
            f"writes of a cell run together, when its graph is run. Either {', '.join(ways)}, or run the cell with "
            "--run (or %config FlinkMagics.run = True), which runs pending writes at such a line."
        )


class AwaitedMetricsError(UserError):
    """The metrics of an observation are asked for before the graph whose write collects them has run.

    Parameters
    ----------
    name
        The observation's.
    write_path, write_location
        The write.
    graph
        The graph's name, if it has one.
    """

    def __init__(self, name: object, write_path: str, write_location: object, graph: str | None) -> None:
        run = "run its graph" if graph is None else f"run it: %flinkrun {graph}"
        super().__init__(
            f"The metrics {name} come with the write to {write_path} ({write_location}), which has not run yet. First "
            f"{run}."
        )


class NotDeployedError(FlinkMagicError):
    """A job that was to be deployed, and of which nothing has begun; the cause is why."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"Nothing of {name} has begun.")


class OverwritesInputError(UserError):
    """A job would overwrite what it reads.

    Parameters
    ----------
    path, location
        What is overwritten, and where.
    source, reader
        What is read, and who reads it: a line or a result's name.
    """

    def __init__(self, path: str, location: object, source: str, reader: object) -> None:
        self.path, self.location, self.source, self.reader = path, location, source, reader
        super().__init__(
            f"{location}: the write overwrites {path}, and {reader} reads {source}, as far as can be told before it "
            "runs. Spark deletes what is overwritten before it reads, so the rows would be lost; nothing has been "
            "deleted. Write to another path, or break the dependency first: df = df.localCheckpoint(). If the read is "
            "another query's, run the cell with --run (or %config FlinkMagics.run = True), which runs that one first, "
            "or run that one in its own cell first."
        )


class InputChangedError(UserError):
    """A file that a deferred write is to read is not the one that its DataFrame listed.

    Parameters
    ----------
    path, location
        What is written, and the write's line.
    file
        The file that has changed.
    is_gone
        Whether it was deleted or moved.
    """

    def __init__(self, path: str, location: object, file: str, *, is_gone: bool) -> None:
        self.path, self.location, self.file = path, location, file
        what = "is gone" if is_gone else "was changed"
        super().__init__(
            f"{location}: the write to {path} reads {file}, which {what} since that line ran. Nothing has been "
            "written, because the rows would not be those of the write's own line. Run the cell again: its "
            "DataFrames then list the files that are there."
        )


class InputChangedWarning(UserWarning):
    """A file that a write reads had changed before the write's own line, but after its DataFrame listed it."""

    def __init__(self, path: str, location: object, file: str) -> None:
        super().__init__(
            f"{location}: the write to {path} reads {file}, which was changed after its DataFrame had listed it. "
            "It is read by its old size, as in a plain cell; make the DataFrame again to read it whole."
        )


class HandledWriteError(UserError):
    """A write whose failure a handler waits for, in a cell whose writes are put off.

    Parameters
    ----------
    path, location
        What is written, and the write's line.
    handler
        The line of the ``try``.
    """

    def __init__(self, path: str, location: object, handler: object) -> None:
        self.path, self.location, self.handler = path, location, handler
        super().__init__(
            f"{location}: the write to {path} is in the try of {handler} (or is called from there), whose handlers "
            "would not see it fail: the writes of a cell run together, when its graph is run. Write it outside the "
            "try (or of the function or magic that has it, such as %time), or run the cell with --run (or %config "
            "FlinkMagics.run = True), which writes on this line."
        )


class ThreadWriteError(UserError):
    """A write on a thread that the cell has started, in a cell whose writes are put off."""

    def __init__(self, method: str, location: object) -> None:
        self.method, self.location = method, location
        super().__init__(
            f"{location}: {method} is called on a thread that the cell has started, where a write runs immediately; "
            "the writes of a cell run together, when its graph is run, and simultaneously where possible. Write on the "
            "cell's own thread, or run the cell with --run (or %config FlinkMagics.run = True)."
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


class SplitArgumentsError(UserError):
    """`split`, its `select` or `side_output` is asked for something that has no meaning.

    Parameters
    ----------
    reason
        What is wrong.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}.")


class NotCapturedError(UserError):
    """`with_options` outside a captured cell or block."""

    def __init__(self) -> None:
        super().__init__(
            "with_options marks the operators of a graph, and nothing is captured here. Call it in a %%flinkgraph "
            "cell, or in a `with flinkmagic.capture(spark)` block, on the thread that runs it."
        )


class UndeferrableWriteError(UserError):
    """A write whose command this version of Spark makes only to run it immediately."""

    def __init__(self, method: str, version: str, location: object) -> None:
        self.method, self.version, self.location = method, version, location
        super().__init__(
            f"{location}: {method} cannot be deferred with Spark {version}, which makes the command of such a write "
            "only to run it immediately; Spark 4.3 is known to make it beforehand. Write it in a plain cell, or write "
            "files: saves to parquet, csv, json, orc and text, and to sources like JDBC, are deferred here too."
        )


class StreamingFrameError(UserError):
    """A streaming DataFrame in a batch job."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} is a streaming DataFrame, and the job is compiled for batch. Read its source with spark.read, "
            "or write it (df.writeStream...start()) in a cell with --mode streaming."
        )
