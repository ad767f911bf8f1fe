"""Defines the listeners of a capture, which answer its questions and are notified of its events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader

    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.streams.deferred_stream import DeferredStream
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite


@dataclass(frozen=True)
class ActionCall:
    """A call of the user's that runs on the rows of a DataFrame: the outermost one, on the cell's own thread."""

    method: str
    df: DataFrame
    """What it was called on."""
    args: tuple[Any, ...]
    """Without the DataFrame."""
    kwargs: Mapping[str, Any]
    original: Callable[..., Any] = field(repr=False)
    """PySpark's own function: ``original(df, *args, **kwargs)`` is the plain call."""
    location: SourceLocation
    text: str
    """The call as it was written, shortened."""
    program: Callable[[], Program] = field(repr=False)
    """Returns what the cell has done so far, without its writes."""

    def run_plainly(self) -> Any:
        """Make the call as it is."""
        return self.original(self.df, *self.args, **self.kwargs)


@dataclass(frozen=True)
class ReadCall:
    """A call of the user's that makes a DataFrame from files: the outermost one, on the cell's own thread."""

    method: str
    reader: DataFrameReader
    args: tuple[Any, ...]
    """Without the reader."""
    kwargs: Mapping[str, Any]
    original: Callable[..., Any] = field(repr=False)
    """PySpark's own function: ``original(reader, *args, **kwargs)`` is the plain call."""

    def run_plainly(self) -> DataFrame:
        """Make the call as it is."""
        return self.original(self.reader, *self.args, **self.kwargs)


class CaptureListener:
    """Answers a capture's questions and is notified of its events, on the thread of the line that runs.

    By default the methods note nothing, and actions and reads run as in a plain cell.
    """

    def awaited(self) -> Iterable[DeferredWrite]:
        """Return the writes of earlier captures that have not run; `awaited_read` hears of a read of their targets."""
        return ()

    def write_deferred(self, pending: int) -> None:
        """Note that a write was put off, and how many are pending now."""

    def awaited_read(self, location: SourceLocation, write: DeferredWrite) -> None:
        """Note that a line has read the target of an awaited write."""

    def ran_plainly(self, location: SourceLocation, text: str, refusal: Exception, seconds: float) -> None:
        """Note, in mode LINES, that plain Spark has written what could not be deployed, why it could not, and in how
        many seconds."""

    def raised(self, error: BaseException) -> None:
        """Note what a call of the block's raises."""

    def act(self, call: ActionCall) -> Any:
        """Carry out an action of the block's own thread; return what it returns."""
        return call.run_plainly()

    def read(self, call: ReadCall) -> DataFrame:
        """Carry out a read of files on that thread; return the DataFrame."""
        return call.run_plainly()

    def cached(self, df: DataFrame, text: str) -> None:
        """Note that a line of that thread, with this call, has asked Spark to cache a DataFrame."""


class DeployingListener(CaptureListener, ABC):
    """Gives the lines of a capture what they need: for the modes that deploy."""

    @abstractmethod
    def run_pending(self, program: Program) -> None:
        """Run the pending writes, which a line needs, and return when they are done.

        Raises
        ------
        NotDeployedError
            In mode LINES, if nothing of the write has begun: plain Spark then writes.
        """


class StreamStartingListener(DeployingListener):
    """Starts streaming queries on their lines, too: for mode STREAMING_RUN."""

    @abstractmethod
    def start_stream(self, stream: DeferredStream) -> None:
        """Start a query on the line of its start."""
