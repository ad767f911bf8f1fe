"""Wraps the function of a `foreachBatch`, which Spark calls for each batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BatchCall = Callable[["DataFrame", int], Any]


class BatchFunction:
    """A user's function for batches, which the job that runs its query may carry out."""

    def __init__(self, function: BatchCall) -> None:
        self.function = function
        self.carry_out: Callable[[BatchCall, DataFrame, int], None] | None = None
        """Is given the function, the batch and its number, and returns when the batch is done. None: the function is
        called."""

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        if self.carry_out is None:
            self.function(batch, batch_id)
        else:
            self.carry_out(self.function, batch, batch_id)
