"""Retains results of finished stages beyond their job, so that a later one need not compute them again.

A result is found by its key (`result_keys`), by the graph that made it or, if it was kept for the session, by any
graph. What is kept is bounded in bytes and in number, and never takes more than what it leaves free on the disk; the
least recently used result goes first. Releasing a shuffle only stops holding Spark's exchange: its files go
with the next garbage collection.

Broadcasts have a smaller bound of their own. What a join hashes is an object in the driver's heap, of whole pages:
2,000 rows take 8 to 64 MiB (seen on 4.3.0). It goes from there, the least recently used first, and nothing else goes
with it: Spark makes it again of the same rows in compact form, which stay, be it for a join or for lost partitions of
what was computed with it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from flinkmagic.errors.actions import EVICTED, OTHER_CODE, OTHER_SETTINGS, RELEASED, other_file
from flinkmagic.free_names import free_name
from flinkmagic.jvm.block_storage import free_disk
from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.planning.stage_handles import ResultKind
from flinkmagic.reuse.durable_store import KERNEL
from flinkmagic.reuse.finished_writes import FinishedWrite

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    from flinkmagic.reuse.result_keys import ChangedFile, ResultKey

_LOG = logging.getLogger(__name__)

DEFAULT_BYTES = 8 * 2**30
"""How much is kept by default. Shuffle files are on disk."""

MOST_RESULTS = 500
"""How many results are kept. Each holds objects of the driver: its plan, and what its plan reads."""

MOST_OF_ACTIONS = 48
"""How many of them may come from actions, each of which leaves some, in a session of any length."""

DRIVER_SHARE = 1 / 8
"""The fraction of the driver's heap that the objects of retained results may take."""


class Part(NamedTuple):
    """What one job has made of a result."""

    exchange: JavaObject | None
    """Of a shuffle, as it ran."""
    states: JavaObject
    """The lists of files of which this part and those before it were made, as `ResultKeys.states` returns them."""


@dataclass(frozen=True)
class Appendable:
    """What is needed to bring a retained result up to date when files are added (`append_refresh`)."""

    open_key: str
    """As `OpenKey.digest`."""
    parts: tuple[Part, ...] = field(repr=False)
    """All that have its rows, oldest first. Of kept rows the last one has all."""

    @property
    def exchanges(self) -> list[JavaObject]:
        """Those of a shuffle; none of kept rows."""
        return [part.exchange for part in self.parts if part.exchange is not None]

    @property
    def states(self) -> list[JavaObject]:
        """Those of its parts."""
        return [part.states for part in self.parts]


@dataclass(eq=False)
class RetainedResult:
    """What one stage of a job left behind."""

    key: str
    kind: ResultKind
    """What it is: a `StageHandle.kind`, or ``"columns"`` of a text source."""
    graph: str
    """The graph whose job made it, or used it last."""
    what: str
    """The user's name for it."""
    for_session: bool
    """Whether other graphs may use it."""
    computed: Any
    """What another job's plan uses."""
    bytes: int
    bytes_by_partition: tuple[int, ...] | None = None
    """Of a shuffle."""
    is_there: Callable[[], bool] = lambda: True
    """Whether all of it still exists."""
    let_go: Callable[[], object] = lambda: None
    """Called when it is no longer kept."""
    driver_bytes: int = 0
    """How much of the driver's heap its object takes."""
    shrink: Callable[[], bool] | None = None
    """Takes that object out of the heap, and returns whether it could; None if only letting go of the result does."""
    seconds: float = 0.0
    """How long it took until it was there."""
    of_action: bool = False
    """Whether an action has left it."""
    name: str = ""
    """The name to release it by; the store gives it."""
    made_at: float = field(default_factory=time.time)
    """When it was computed."""
    used_at: float = field(default_factory=time.time)
    """When it was used last."""
    uses: int = 0
    """How often it was used again."""
    is_shrunk: bool = False
    """Whether its object is out of the heap."""
    kernel: str = KERNEL
    """The process that computed it."""
    durable_key: str = ""
    """The key by which later processes may find it; empty if they cannot."""
    stored_at: Path | None = None
    """The file by which they do; None if it is not stored for them."""
    is_from_store: bool = False
    """Whether it was found there."""
    appendable: Appendable | None = None
    """None if it cannot be brought up to date."""

    @property
    def place(self) -> str:
        """Where it is: what is a relation lies where Spark has room."""
        here = {"shuffle": "disk", "broadcast": "memory", "subquery": "memory"}.get(self.kind, "memory or disk")
        return f"{here}, durable" if self.stored_at is not None else here


class RetainedResults:
    """All that is retained of the jobs of one SparkContext; can be called from any thread.

    Parameters
    ----------
    driver_bytes : int, optional
        How much of the driver's heap objects may take.
    free_disk : callable, optional
        Returns how many bytes are free on the disk; None if that is not known.
    """

    def __init__(self, driver_bytes: int | None = None, free_disk: Callable[[], int | None] = lambda: None) -> None:
        self.bound = DEFAULT_BYTES
        self._free_disk = free_disk
        self._driver_bound = driver_bytes
        self.writes: dict[str, dict[str, FinishedWrite]] = {}
        """By graph whose last run failed, the writes that it finished, by their keys."""
        self.last_keys: dict[tuple[str, str], ResultKey] = {}
        """By graph and DataFrame, the key under which rows were kept last; also of what has gone since."""
        self._lock = threading.RLock()
        self._retained: dict[tuple[str, str], RetainedResult] = {}
        """By graph and key, the least recently used one first."""
        self._evicted: dict[str, None] = {}
        """The keys of what has gone for want of room, oldest first."""

    def entries(self) -> list[RetainedResult]:
        """Return what is retained, last used first."""
        with self._lock:
            return list(reversed(self._retained.values()))

    def find(self, graph: str, key: str, *, of_session: bool) -> RetainedResult | None:
        """Return a result with this key that a graph may use: its own, else one that is kept for the session."""
        with self._lock:
            own = self._retained.get((graph, key))
            if own is not None or not of_session:
                return own
            return next((one for one in self._retained.values() if one.key == key and one.for_session), None)

    def appendable(self, graph: str, *, of_session: bool) -> list[RetainedResult]:
        """Return the results that a graph may bring up to date, last used first."""
        with self._lock:
            return [
                one
                for one in reversed(self._retained.values())
                if one.appendable is not None and (one.graph == graph or (of_session and one.for_session))
            ]

    def use(self, result: RetainedResult) -> None:
        """Note a use of a result."""
        with self._lock:
            place = (result.graph, result.key)
            if self._retained.get(place) is result:
                result.used_at, result.is_shrunk = time.time(), False
                result.uses += 1
                self._retained[place] = self._retained.pop(place)

    def add(self, result: RetainedResult) -> None:
        """Retain a result, replacing one with the same key; release others if it takes too much."""
        with self._lock:
            former = self._retained.pop((result.graph, result.key), None)
            result.name = former.name if former is not None else self._name_for(result)
            if former is not None and former.computed is result.computed:
                result.uses = former.uses
            self._retained[result.graph, result.key] = result
            self._evicted.pop(result.key, None)
            gone = [former] if former is not None and former.computed is not result.computed else []
            gone += self._over_bound()
            large = self._over_driver_bound(gone)
        _let_go(gone)
        for one in large:
            one.is_shrunk = one.shrink is not None and one.shrink()

    def why_gone(self, former: ResultKey, key: ResultKey, changed_file: ChangedFile) -> str:
        """Return why rows that were kept of a DataFrame are not used.

        Parameters
        ----------
        former, key : ResultKey
            Under which they were kept, and which its rows have now.
        """
        if former.settings != key.settings:
            return OTHER_SETTINGS
        if former.digest != key.digest:
            file = changed_file(key.files)
            return other_file(file) if file else OTHER_CODE
        with self._lock:
            return EVICTED if key.digest in self._evicted else RELEASED

    def note_key(self, graph: str, name: str, key: ResultKey) -> None:
        """Note under which key a graph keeps the rows of a DataFrame."""
        with self._lock:
            self.last_keys.pop((graph, name), None)
            self.last_keys[graph, name] = key
            if len(self.last_keys) > MOST_RESULTS:
                del self.last_keys[next(iter(self.last_keys))]

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
            gone = [one for one in self._retained.values() if which(one)]
            for one in gone:
                del self._retained[one.graph, one.key]
        _let_go(gone)
        return gone

    def drop_former(self, graph: str, needed: Container[str]) -> None:
        """Release what a graph has kept for its own runs, except the results of these keys."""
        self.drop(lambda one: one.graph == graph and not one.for_session and one.key not in needed)

    def _over_bound(self) -> list[RetainedResult]:
        gone = []
        total = sum(one.bytes for one in self._retained.values())
        actions = sum(one.of_action for one in self._retained.values())
        free = self._free_disk()
        bound = self.bound if free is None else min(self.bound, (total + free) // 2)
        for place, one in list(self._retained.items()):
            too_many = len(self._retained) > MOST_RESULTS or (one.of_action and actions > MOST_OF_ACTIONS)
            if total > bound or too_many:
                total -= one.bytes
                actions -= one.of_action
                gone.append(self._retained.pop(place))
                self._evicted[one.key] = None
        while len(self._evicted) > MOST_RESULTS:
            del self._evicted[next(iter(self._evicted))]
        return gone

    def _over_driver_bound(self, gone: list[RetainedResult]) -> list[RetainedResult]:
        """Return the results whose objects take too much of the heap; `gone` gets those that cannot be without."""
        held = sum(one.driver_bytes for one in self._retained.values() if not one.is_shrunk)
        large = []
        for place, one in list(self._retained.items()):
            if self._driver_bound is None or held <= self._driver_bound:
                break
            if one.driver_bytes and not one.is_shrunk:
                held -= one.driver_bytes
                if one.shrink is not None:
                    large.append(one)
                else:
                    gone.append(self._retained.pop(place))
        return large

    def _name_for(self, result: RetainedResult) -> str:
        """Return a name that can be typed: the graph's, with a number."""
        taken = {one.name for one in self._retained.values()}
        return free_name(f"{result.graph}.1", taken, stem=f"{result.graph}.")


def _let_go(results: Sequence[RetainedResult]) -> None:
    """Release results, outside the lock: it calls Spark."""
    for one in results:
        try:
            one.let_go()
        except Exception as gone:  # noqa: BLE001 - with a session that is gone its results are gone, too
            _LOG.debug("nothing to release for %s: %s", one.name, gone)


@kept_for_context
def retained_results(sc: SparkContext) -> RetainedResults:
    """Return the results that are retained of the jobs of a SparkContext."""
    assert sc._jvm is not None
    heap = int(sc._jvm.Runtime.getRuntime().maxMemory())
    return RetainedResults(int(heap * DRIVER_SHARE), partial(free_disk, sc))
