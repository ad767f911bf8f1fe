"""Measures what a broadcast takes of the driver's heap, and frees it.

Spark keeps what a join looks rows up in as an object: for an ``UnsafeHashedRelation`` a page of 1 to 64 MiB, by the
size of the heap, even for a single row; a ``LongHashedRelation`` of 2,000 rows took 32 MiB. It also keeps the blocks
that it sends to executors: the rows alone, compressed (27 and 44 kB of these 2,000), on disk if memory is short.
Whoever asks for the object when it is gone gets it made of those again, in milliseconds: a later query, or Spark itself
where it computes lost partitions of what was joined. Seen on 4.3.0.
"""

from __future__ import annotations

from itertools import count, takewhile
from typing import TYPE_CHECKING

from flinkmagic.jvm.block_storage import driver_blocks
from flinkmagic.jvm.java import java_class

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext


class DriverBroadcast:
    """The rows of a broadcast that has been made.

    Parameters
    ----------
    exchange : py4j.java_gateway.JavaObject
        The ``BroadcastExchangeExec``, as it ran.
    """

    def __init__(self, sc: SparkContext, exchange: JavaObject) -> None:
        self._sc = sc
        self._blocks = driver_blocks(sc)
        self._id = int(exchange.executeBroadcast().id())

    def compact_bytes(self) -> int:
        """Return how large its rows are, without the object."""
        found = (self._blocks.getStatus(self._block(f"piece{number}")) for number in count())
        there = (one.get() for one in takewhile(lambda one: one.isDefined(), found))
        return sum(int(one.memSize()) + int(one.diskSize()) for one in there)

    def shrink(self) -> bool:
        """Take the object out of the heap, unless a task is just reading it; return whether it is gone."""
        block = self._block("")
        entry = self._blocks.blockInfoManager().get(block)
        if entry.isDefined() and entry.get().readerCount():
            return False
        self._blocks.removeBlock(block, False)
        return True

    def _block(self, part: str) -> JavaObject:
        return java_class(self._sc._jvm, "org.apache.spark.storage.BroadcastBlockId")(self._id, part)
