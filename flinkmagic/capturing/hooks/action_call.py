"""Actions that somebody else carries out: the whole call is handed over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.source_code.source_reader import user_frame

if TYPE_CHECKING:
    from flinkmagic.capturing.hooks.call_recorder import CallRecorder
    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.source_code.source_location import SourceLocation


@dataclass(frozen=True)
class ActionCall:
    """A call of the user's that runs on the rows of a DataFrame: the outermost one, on the cell's own thread.

    Attributes
    ----------
    method : str
        The method's name.
    df : DataFrame
        What it was called on.
    args, kwargs : sequence, mapping
        Its arguments, without the DataFrame.
    original : callable
        PySpark's own function: ``original(df, *args, **kwargs)`` is the plain call.
    location : SourceLocation
        The user's line.
    text : str
        The call as it was written, shortened.
    program : callable
        Returns what the cell has done so far, without its writes.
    """

    method: str
    df: DataFrame
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    original: Callable[..., Any] = field(repr=False)
    location: SourceLocation
    text: str
    program: Callable[[], Program] = field(repr=False)

    def run_plainly(self) -> Any:
        """Make the call as it is."""
        return self.original(self.df, *self.args, **self.kwargs)


def carried_out(
    recorder: CallRecorder,
    method: str,
    original: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Make a call of an action, or hand it over if the capture does not carry out actions itself."""
    df = args[0] if args else None
    is_own = threading.get_ident() == recorder.thread
    # An RDD runs nothing by itself; what is asked of it is the RDD's.
    if recorder.on_action is None or not is_own or not isinstance(df, DataFrame) or method == "rdd":
        return original(*args, **kwargs)
    frame = user_frame()
    return recorder.on_action(
        ActionCall(
            method=method,
            df=df,
            args=tuple(args[1:]),
            kwargs=dict(kwargs),
            original=original,
            location=recorder.source.location(frame),
            text=recorder.source.call_text(frame, method, args[1:], kwargs),
            program=recorder.so_far,
        )
    )
