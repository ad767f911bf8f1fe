"""What became of one superstep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Superstep:
    """What became of one superstep.

    Attributes
    ----------
    number : int
        From 1.
    seconds : float
        How long it took, from its step to the end of `until`.
    planning_seconds : float
        How long it took to compile.
    tasks : int
        How many tasks have run.
    measures : mapping
        What `until` has returned, column by column.
    """

    number: int
    seconds: float
    planning_seconds: float
    tasks: int
    measures: Mapping[str, Any] = field(default_factory=dict)
