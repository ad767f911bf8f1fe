"""What a hook may ask of a capture's recorder, and tell it: the only part of the recorder that hooks know."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, Protocol

from flinkmagic.capturing.sql.sql_writes import StatementRecorder
from flinkmagic.capturing.streams.pending_streams import PendingStreams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.capture_listener import CaptureListener
    from flinkmagic.capturing.capture_mode import CaptureMode
    from flinkmagic.capturing.operator_options import OperatorOptions
    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.selections import Selected
    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.capturing.source_code.source_reader import SourceReader
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite
    from flinkmagic.capturing.writes.targets import Source


class CallRecorder(StatementRecorder, Protocol):
    """Notes the calls of one capture: only the user's own, not those that PySpark makes to serve them.

    Attributes
    ----------
    ended : bool
        The session has been stopped: no more calls are noted.
    mode : CaptureMode
        What becomes of writes.
    listener : CaptureListener
        What carries out the actions and reads of the cell's own thread.
    streams : PendingStreams
        Defers the starts of streaming queries, or does not.
    thread : int
        The cell's own thread.
    threads : set of int
        The threads that work for the cell.
    depth : int
        How many hooks this thread is in: calls inside a hook serve the outermost one.
    source : SourceReader
        Reads the user's source.
    grouped_text : mutable mapping of GroupedData to str
        How groupings were written; their methods make the DataFrames.
    local_rdds : set of int
        The ids of the RDDs that were made from rows of this process.
    observations : list of Observation
        The observations that the cell has put into DataFrames.
    awaited : list of DeferredWrite
        Writes that were captured before and have not run.
    """

    ended: bool
    mode: CaptureMode
    listener: CaptureListener
    streams: PendingStreams
    thread: int
    threads: set[int]
    source: SourceReader
    grouped_text: MutableMapping[Any, str]
    local_rdds: set[int]
    observations: list[Any]
    awaited: list[DeferredWrite]

    @property
    def depth(self) -> int: ...

    @depth.setter
    def depth(self, depth: int) -> None: ...

    def use(self, frames: Iterable[DataFrame]) -> None:
        """Note that rows of frames are read, or that other code is given them."""
        ...

    def read(self, sources: Iterable[Source]) -> None:
        """Report a read of what earlier captures are still to write."""
        ...

    def ran(self) -> None:
        """Note that an action has run."""
        ...

    def handler(self) -> SourceLocation | None:
        """Return the ``try`` whose handlers wait for the running line to raise, in the cell or in what it calls."""
        ...

    def snapshot(self, spark: Any) -> SessionSnapshot:
        """Return the session's state now."""
        ...

    def note_stream(self, text: str, location: SourceLocation) -> None:
        """Note that a line has started a streaming query."""
        ...

    def mark(self, df: DataFrame, options: OperatorOptions) -> None:
        """Note the options for the operators of a frame."""
        ...

    def select(self, parent: DataFrame, df: DataFrame, selected: Selected) -> None:
        """Note that a frame has some rows of another."""
        ...

    def pending_impurity(self) -> bool:
        """Return whether a function of a pending write may touch files, clocks or chance."""
        ...

    def close(self) -> None:
        """Note the session's state for the last time: it is about to be stopped."""
        ...

    def closed(self) -> None:
        """Note no more calls if the session has been stopped now."""
        ...

    def so_far(self) -> Program:
        """Return what the cell has done until now, without its writes."""
        ...
