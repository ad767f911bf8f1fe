"""What became of a stage."""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.planning.adaptive_stages import AS_PLANNED, StageAdaptation


@dataclass(frozen=True)
class StageOutcome:
    """The outcome of a stage.

    Attributes
    ----------
    error : BaseException or None
        Why it failed; None if it is done.
    bytes_by_partition : tuple of int or None
        For a shuffle the real size of each partition, over all map tasks.
    adaptation : StageAdaptation
        How the stage's run differed from its plan.
    """

    error: BaseException | None = None
    bytes_by_partition: tuple[int, ...] | None = None
    adaptation: StageAdaptation = AS_PLANNED
