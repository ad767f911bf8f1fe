"""Hands actions over to what carries them out, if the capture has such a thing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.hooks.action_call import ActionCall
from flinkmagic.capturing.source_code.source_reader import user_frame

if TYPE_CHECKING:
    from flinkmagic.capturing.hooks.call_recorder import CallRecorder


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
