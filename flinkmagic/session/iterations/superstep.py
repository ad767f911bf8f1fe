"""Reports how one superstep went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Superstep:
    """How one superstep went."""

    number: int
    """From 1."""
    seconds: float
    """From the call of the step to the end of `until`."""
    planning_seconds: float
    """The part of `seconds` in which it was compiled."""
    tasks: int
    measures: Mapping[str, Any] = field(default_factory=dict)
    """What `until` has returned, column by column."""
