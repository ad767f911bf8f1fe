"""Tasks that wait for a file: a test says how long they take, and no clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def held_until(go: Path) -> Callable[[Any], Any]:
    """A function for tasks, which gives a value back once the file is there; `begun` tells who waits.

    After two minutes it raises, so that a failed test leaves no task behind.
    """
    gate = str(go)

    def held(value):  # type hints would say to Spark that it takes a batch
        import time
        from pathlib import Path

        Path(f"{gate}-{value}").touch()
        end = time.monotonic() + 120
        while not Path(gate).exists():
            if time.monotonic() > end:
                raise TimeoutError(f"nobody has made {gate}")
            time.sleep(0.05)
        return value

    return held


def begun(go: Path) -> int:
    """How many values have come to the function that waits for a file."""
    return len(list(go.parent.glob(f"{go.name}-*")))
