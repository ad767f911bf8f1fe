"""States of subtasks as views hold them."""

from __future__ import annotations

from collections.abc import Iterable

from flinkmagic.display.snapshot import STATE_NAMES


def state_codes(names: Iterable[str]) -> bytes:
    """Return one byte for each state's name."""
    return bytes(map(STATE_NAMES.index, names))
