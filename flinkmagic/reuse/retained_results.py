"""Results of finished stages that outlive their job, so that a later one need not compute them again.

A result is found by its key (`result_keys`), by the graph that made it or, if it was kept for the session, by any
graph. What is kept is bounded in bytes and in number, and never takes more than what it leaves free on the disk; the
least recently used result goes first. Releasing a shuffle only means to stop holding Spark's exchange: its files go
with the next garbage collection.

Broadcasts have a smaller bound of their own: a driver holds each as an object, and so does every result computed with
one, since Spark would compute its lost partitions with it again. A heap full of them has no room for the next one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from flinkmagic.jvm.block_storage import free_disk
from flinkmagic.planning.stage_results import ResultKind
from flinkmagic.reuse.finished_writes import FinishedWrite

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

DEFAULT_BYTES = 8 * 2**30
"""How much is kept by default. Shuffle files are on disk."""

MOST_RESULTS = 500
"""How many results are kept. Each holds objects of the driver: its plan, and what its plan reads."""

MOST_OF_ACTIONS = 48
"""How many of them may come from actions, each of which leaves some, in a session of any length."""

DRIVER_SHARE = 1 / 8
"""The fraction of the driver's heap that retained results may take for broadcasts."""


@dataclass(eq=False)
class RetainedResult:
    """What one stage of a job left behind.

    Attributes
    ----------
    key : str
        The key of its rows.
    kind : str
        What it is (`StageResult.kind`).
    graph : str
        The graph whose job made it, or used it last.
    what : str
        The user's name for it.
    for_session : bool
        Whether other graphs may use it.
    computed : object
        What another job's plan uses.
    bytes : int
        How much it holds.
    bytes_by_partition : tuple of int, optional
        For a shuffle.
    is_there : callable
        Whether all of it still exists.
    let_go : callable
        Called when it is no longer kept.
    broadcasts : mapping of str to int
        By their keys, the bytes of the broadcasts that it is, or was computed with.
    seconds : float
        How long it took until it was there.
    of_action : bool
        Whether an action has left it.
    """

    key: str
    kind: ResultKind
    graph: str
    what: str
    for_session: bool
    computed: Any
    bytes: int
    bytes_by_partition: tuple[int, ...] | None = None
    is_there: Callable[[], bool] = lambda: True
    let_go: Callable[[], None] = lambda: None
    broadcasts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    of_action: bool = False
    name: str = ""
    made_at: float = field(default_factory=time.time)
    used_at: float = field(default_factory=time.time)


class RetainedResults:
    """All that is retained of the jobs of one SparkContext; can be called from any thread.

    Parameters
    ----------
    driver_bytes : int, optional
        How much of the driver's heap broadcasts may take.
    free_disk : callable, optional
        Returns how many bytes are free on the disk; None if that is not known.
    """

    def __init__(self, driver_bytes: int | None = None, free_disk: Callable[[], int | None] = lambda: None) -> None:
        self.bound = DEFAULT_BYTES
        self._free_disk = free_disk
        self._driver_bound = driver_bytes
        self.writes: dict[str, dict[str, FinishedWrite]] = {}
        """By graph whose last run failed, the writes that it finished, by their keys."""
        self._lock = threading.RLock()
        self._kept: dict[tuple[str, str], RetainedResult] = {}
        """By graph and key, the least recently used one first."""

    def entries(self) -> list[RetainedResult]:
        """Return what is retained, last used first."""
        with self._lock:
            return list(reversed(self._kept.values()))

    def find(self, graph: str, key: str, *, of_session: bool) -> RetainedResult | None:
        """Return a result with this key that a graph may use: its own, else one that is kept for the session."""
        with self._lock:
            own = self._kept.get((graph, key))
            if own is not None or not of_session:
                return own
            return next((one for one in self._kept.values() if one.key == key and one.for_session), None)

    def use(self, result: RetainedResult) -> None:
        """Note a use of a result."""
        with self._lock:
            place = (result.graph, result.key)
            if self._kept.get(place) is result:
                result.used_at = time.time()
                self._kept[place] = self._kept.pop(place)

    def add(self, result: RetainedResult) -> None:
        """Retain a result, replacing one with the same key; release others if it takes too much."""
        with self._lock:
            former = self._kept.pop((result.graph, result.key), None)
            result.name = former.name if former is not None else self._name_for(result)
            self._kept[result.graph, result.key] = result
            gone = [former] if former is not None and former.computed is not result.computed else []
            gone += self._over_bound()
        _let_go(gone)

    def set_bound(self, size: int) -> None:
        """Retain at most this many bytes from now on."""
        with self._lock:
            self.bound = size
            gone = self._over_bound()
        _let_go(gone)

    def release(self, name: str) -> list[RetainedResult]:
        """Release the results of a graph, or the one result of that name; return what was released."""
        return self.drop(lambda one: name in (one.graph, one.name))

    def drop(self, which: Callable[[RetainedResult], bool]) -> list[RetainedResult]:
        """Release some results; return what was released."""
        with self._lock:
            gone = [one for one in self._kept.values() if which(one)]
            for one in gone:
                del self._kept[one.graph, one.key]
        _let_go(gone)
        return gone

    def _over_bound(self) -> list[RetainedResult]:
        gone = []
        total = sum(one.bytes for one in self._kept.values())
        actions = sum(one.of_action for one in self._kept.values())
        free = self._free_disk()
        bound = self.bound if free is None else min(self.bound, (total + free) // 2)
        for place, one in list(self._kept.items()):
            too_much_in_driver = bool(one.broadcasts) and self._driver_is_full()
            too_many = len(self._kept) > MOST_RESULTS or (one.of_action and actions > MOST_OF_ACTIONS)
            if total > bound or too_much_in_driver or too_many:
                total -= one.bytes
                actions -= one.of_action
                gone.append(self._kept.pop(place))
        return gone

    def _driver_is_full(self) -> bool:
        held: dict[str, int] = {}
        for one in self._kept.values():
            held.update(one.broadcasts)
        return self._driver_bound is not None and sum(held.values()) > self._driver_bound

    def _name_for(self, result: RetainedResult) -> str:
        """Return a name that can be typed: the graph's, with a number."""
        taken = {one.name for one in self._kept.values()}
        number = 1
        while f"{result.graph}.{number}" in taken:
            number += 1
        return f"{result.graph}.{number}"


def _let_go(results: Sequence[RetainedResult]) -> None:
    """Release results, outside the lock: it calls Spark."""
    for one in results:
        try:
            one.let_go()
        except Exception as gone:  # noqa: BLE001 - with a session that is gone its results are gone, too
            _LOG.debug("nothing to release for %s: %s", one.name, gone)


_STORES: WeakKeyDictionary[Any, RetainedResults] = WeakKeyDictionary()
_STORES_LOCK = threading.Lock()


def retained_results(sc: SparkContext) -> RetainedResults:
    """Return the results that are retained of the jobs of a SparkContext."""
    with _STORES_LOCK:
        if sc not in _STORES:
            assert sc._jvm is not None
            heap = int(sc._jvm.Runtime.getRuntime().maxMemory())
            _STORES[sc] = RetainedResults(int(heap * DRIVER_SHARE), partial(free_disk, sc))
        return _STORES[sc]
