"""Hooks `DataFrame.randomSplit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.hooks.call_hooks import Args, Kwargs, LazyCall
from flinkmagic.capturing.persisted import persisted
from flinkmagic.capturing.selections import Selected

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder


class RandomSplit(LazyCall):
    """`randomSplit`: what is split is computed once for all parts, or rows may be in several of them or in none."""

    def arguments(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        if recorder.mode is CaptureMode.LINES and args and not args[0].isStreaming:
            shared, _ = persisted(args[0])
            args = (shared, *args[1:])
        return args, kwargs

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        result = super().after(recorder, args, kwargs, result)
        if recorder.mode is not CaptureMode.LINES:
            for number, part in enumerate(result, start=1):
                recorder.select(args[0], part, Selected(names=(f"part {number} of {len(result)}",)))
        return result
