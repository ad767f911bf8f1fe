"""What a captured cell may not do, or may not do in this place."""

from __future__ import annotations

from dataclasses import field

from flinkmagic.errors.base import FlinkMagicError, UserError
from flinkmagic.errors.usage import InvalidValueError


class TopLevelAwaitError(UserError):
    """A captured cell that awaits outside a function."""

    line: int

    template = (
        "Line {line} awaits at the top level, and what called %%flinkgraph cannot await: another cell magic, or "
        "run_cell_magic. Make %%flinkgraph the cell's first line, or await in a separate cell."
    )


class NoResultError(UserError):
    """A program that neither writes nor binds a DataFrame to a name."""

    name: str

    template = (
        "{name!r} has nothing to compute: no DataFrame is written and none is bound to a name. "
        "Write one (df.write.parquet(...)), or give one a name (late = flights.where(...))."
    )


class SparkConnectSessionError(UserError):
    """A Spark Connect session, which has no SparkContext to deploy on."""

    template = (
        "This is a Spark Connect session: it has no SparkContext in this process, so its stages cannot be "
        "scheduled from here. Use a classic session: SparkSession.builder.master(...).getOrCreate() without "
        "remote()."
    )


class ListenerRequiredError(UserError):
    """A capture in a mode that deploys what its lines need, without the listener that deploys it."""

    mode: str
    listener: str
    """The class that is needed, of `flinkmagic.capturing.capture_listener`."""

    template = (
        "A capture in mode {mode!r} runs what its lines need: give it a listener of the class {listener} "
        "(flinkmagic.capturing.capture_listener), or defer all with the mode 'batch' or 'streaming'."
    )


class PendingWriteError(UserError):
    """A line touches what an earlier line of the same cell has not written yet."""

    location: object
    """The line that cannot go on."""
    code: str
    """That line's text."""
    touches: str
    """What it does with the target: ``reads``, ``changes``."""
    write_path: str
    """What the pending write writes."""
    write_location: object

    def __str__(self) -> str:
        ways = ["move this line to another cell and run the graph first"]
        if self.touches == "reads":
            ways.append("use the DataFrame itself that is written there")
        return (
            f"{self.location}: `{self.code}` {self.touches} {self.write_path}, but the write of {self.write_location} "
            "is still pending: the writes of a cell run together, when its graph is run. "
            f"Either {', '.join(ways)}, or run the cell with --run (or "
            "%config FlinkMagics.run = True), which runs pending writes at such a line."
        )


class AwaitedMetricsError(UserError):
    """The metrics of an observation are asked for before the graph whose write collects them has run."""

    name: object
    """The observation's name."""
    write_path: str
    write_location: object
    graph: str | None
    """The graph's name, if it has one."""

    def __str__(self) -> str:
        run = "run its graph" if self.graph is None else f"run it: %flinkrun {self.graph}"
        return (
            f"The metrics {self.name} come with the write to {self.write_path} ({self.write_location}), which has not "
            f"run yet. First {run}."
        )


class NotDeployedError(FlinkMagicError):
    """A job that was to be deployed, and of which nothing has begun; the cause is why."""

    name: str

    template = "Nothing of {name} has begun."


class OverwritesInputError(UserError):
    """A job would overwrite what it reads."""

    path: str
    """What is overwritten."""
    location: object
    source: str
    """What is read."""
    reader: object
    """Who reads it: a line, or a result's name."""

    template = (
        "{location}: the write overwrites {path}, and {reader} reads {source}, as far as can be told before it "
        "runs. Spark deletes what is overwritten before it reads, so the rows would be lost; nothing has been "
        "deleted. Write to another path, or break the dependency first: df = df.localCheckpoint(). If the read is "
        "another query's, run the cell with --run (or %config FlinkMagics.run = True), which runs that one first, "
        "or run that one in its own cell first."
    )


class InputChangedError(UserError):
    """A file that a deferred write is to read is not the one that its DataFrame listed."""

    path: str
    """What is written."""
    location: object
    file: str
    """The file that has changed."""
    is_gone: bool = field(kw_only=True)
    """Whether it was deleted or moved."""

    def __str__(self) -> str:
        what = "is gone" if self.is_gone else "was changed"
        return (
            f"{self.location}: the write to {self.path} reads {self.file}, which {what} since that line ran. Nothing "
            "has been written, because the rows would not be those of the write's own line. Run the cell again: its "
            "DataFrames then list the files that are there."
        )


class InputChangedWarning(FlinkMagicError, UserWarning):  # noqa: N818 - it is a warning
    """A file that a write reads had changed before the write's own line, but after its DataFrame listed it."""

    path: str
    location: object
    file: str

    template = (
        "{location}: the write to {path} reads {file}, which was changed after its DataFrame had listed it. "
        "It is read by its old size, as in a plain cell; make the DataFrame again to read it whole."
    )


class HandledWriteError(UserError):
    """A write whose failure a handler waits for, in a cell whose writes are put off."""

    path: str
    """What is written."""
    location: object
    handler: object
    """The line of the ``try``."""

    template = (
        "{location}: the write to {path} is in the try of {handler} (or is called from there), whose handlers "
        "would not see it fail: the writes of a cell run together, when its graph is run. Write it outside the "
        "try (or of the function or magic that has it, such as %time), or run the cell with --run (or %config "
        "FlinkMagics.run = True), which writes on this line."
    )


class ThreadWriteError(UserError):
    """A write on a thread that the cell has started, in a cell whose writes are put off."""

    method: str
    location: object

    template = (
        "{location}: {method} is called on a thread that the cell has started, where a write runs immediately; "
        "the writes of a cell run together, when its graph is run, and simultaneously where possible. Write on the "
        "cell's own thread, or run the cell with --run (or %config FlinkMagics.run = True)."
    )


class OperatorOptionsError(UserError):
    """`with_options` asks for something that has no meaning, or that Spark cannot do."""

    location: object

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.location is None else f"{self.location}: {text}"


class InvalidOperatorOptionError(OperatorOptionsError):
    """An option that cannot have its value."""

    error: InvalidValueError

    template = "{error}"


class StageOptionsConflictError(OperatorOptionsError):
    """Two operators of one stage are to have different values of an option that holds for the stage."""

    option: str
    value: object
    operator: str
    earlier: object
    """The line that asks for the other value."""
    before: object
    """That value."""

    template = (
        "{option}={value!r} is asked for {operator!r}, and {earlier} asks for {before!r} in the same Spark stage. A "
        "stage runs within one task: give both the same, or repartition between them."
    )


class MaxParallelismTooLowError(OperatorOptionsError):
    """An operator has more partitions than its max parallelism allows."""

    max_parallelism: int
    operator: str
    partitions: int

    template = (
        "max_parallelism is {max_parallelism}, and {operator!r} has {partitions} partitions. Raise it, or have fewer "
        "partitions: repartition, or --parallelism."
    )


class UidTakenError(OperatorOptionsError):
    """Two operators are to have one uid."""

    uid: str
    earlier: object
    """The line that gave it first."""

    template = "the uid {uid!r} is taken: {earlier} gave it to another operator. Give each one of its own."


class UnbreakableChainError(OperatorOptionsError):
    """A chain is to be broken where Spark runs several partitions of the one operator within a task of the other."""

    upstream: str
    upstream_partitions: int
    operator: str
    partitions: int

    template = (
        "the chain cannot be broken between {upstream!r} ({upstream_partitions} partitions) and {operator!r} "
        "({partitions}): Spark runs several partitions of the one within a task of the other. Leave out the "
        "chaining, or repartition between them."
    )


class SplitArgumentsError(InvalidValueError):
    """`split`, its `select` or `side_output` is asked for something that has no meaning."""


class NotCapturedError(UserError):
    """`with_options` outside a captured cell or block."""

    template = (
        "with_options marks the operators of a graph, and nothing is captured here. Call it in a %%flinkgraph "
        "cell, or in a `with flinkmagic.capture(spark)` block, on the thread that runs it."
    )


class UndeferrableWriteError(UserError):
    """A write whose command this version of Spark makes only to run it immediately."""

    method: str
    version: str
    location: object

    template = (
        "{location}: {method} cannot be deferred with Spark {version}, which makes the command of such a write "
        "only to run it immediately; Spark 4.3 is known to make it beforehand. Write it in a plain cell, or write "
        "files: saves to parquet, csv, json, orc and text, and to sources like JDBC, are deferred here too."
    )


class StreamingFrameError(UserError):
    """A streaming DataFrame in a batch job."""

    name: str

    template = (
        "{name!r} is a streaming DataFrame, and the job is compiled for batch. Read its source with spark.read, "
        "or write it (df.writeStream...start()) in a cell with --mode streaming."
    )
