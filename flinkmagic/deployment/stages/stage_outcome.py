"""Records how a stage ended."""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.planning.adaptive_stages import AS_PLANNED, StageAdaptation


@dataclass(frozen=True)
class StageOutcome:
    """The outcome of a stage."""

    error: BaseException | None = None
    """Why it failed; None if it is done."""
    bytes_by_partition: tuple[int, ...] | None = None
    """For a shuffle, the real size of each partition, over all map tasks."""
    adaptation: StageAdaptation = AS_PLANNED
    """How the stage's run differed from its plan."""
