"""Hands actions over to what carries them out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.capture_listener import ActionCall
from flinkmagic.capturing.source_code.source_reader import user_frame

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder


def carried_out(
    recorder: Recorder,
    method: str,
    original: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Let the capture's listener carry out an action of the cell's own thread; make any other call as it is."""
    df = args[0] if args else None
    is_own = threading.get_ident() == recorder.thread
    # An RDD runs nothing by itself; what is asked of it is the RDD's.
    if not is_own or not isinstance(df, DataFrame) or method == "rdd":
        return original(*args, **kwargs)
    frame = user_frame()
    return recorder.listener.act(
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
