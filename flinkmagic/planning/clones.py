"""Clones the session for planning a job, so that the user's configuration is never touched."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flinkmagic.capturing.driver import capture_reader
from flinkmagic.capturing.session_snapshot import SessionSnapshot
from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.jvm.java import query_execution
from flinkmagic.options import PIPELINED
from flinkmagic.planning.adaptive_stages import CHOOSES_JOINS, MERGES_PARTITIONS

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from flinkmagic.options import JobOptions

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_PLANNING = {
    # Stages are ours to schedule: an adaptive plan schedules its own.
    "spark.sql.adaptive.enabled": "false",
    # Spark would otherwise list many folders by a job, and planning starts none.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1),
}

_UNLESS_CHOSEN = {
    # An aggregation that relies on a sort-merge join's order would keep the join from hashing a side that turns out
    # small. The resulting rows are the same either way.
    "spark.sql.execution.replaceHashWithSortAgg": "false",
}


_UNLESS_CHOSEN_BY_ACTION = {
    # Compressing rows that are kept for later actions takes as long again as keeping them; what they may cost, and with
    # that how many they are, is bounded.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}


@dataclass(frozen=True)
class SessionClone:
    """A clone of a session in one state."""

    snapshot: SessionSnapshot | None
    session: JavaObject
    state: JavaObject
    parallelism: int
    reuses_exchanges: bool
    """Whether the user lets Spark reuse equal exchanges."""
    name: str = ""
    """Of the state, among those of a job."""


@kept_for_context
def _by_way(sc: SparkContext) -> dict[object, KeptClones]:
    return {}


class KeptClones:
    """Clones that the next job may be planned on, if its lines saw the same session in the same state.

    Making one, and warming up its optimiser and planner, takes longer than planning a small query. All the jobs must
    have the same parallelism, slots and way of exchanging rows.
    """

    MOST = 4

    @classmethod
    def of(cls, sc: SparkContext, way: object) -> KeptClones:
        """Return those of a SparkContext for jobs that are planned in one way; from any thread."""
        return _by_way(sc).setdefault(way, cls())

    def __init__(self) -> None:
        self._clones: deque[tuple[JavaObject, SessionClone]] = deque(maxlen=self.MOST)

    def find(self, jsession: JavaObject, snapshot: SessionSnapshot) -> SessionClone | None:
        """Return a clone as it would be made; None if there is none."""
        for owner, clone in tuple(self._clones):
            if clone.snapshot == snapshot and owner == jsession:
                # A clone that is made knows no tables yet.
                clone.state.catalog().invalidateAllCachedTables()
                return clone
        return None

    def keep(self, jsession: JavaObject, clone: SessionClone) -> None:
        """Keep a clone of a session; it tells nobody of its queries, which run on the session itself."""
        clone.session.listenerManager().clear()
        self._clones.append((jsession, clone))

    def clear(self) -> None:
        """Let go of all."""
        self._clones.clear()


class SessionClones:
    """Makes one clone for each session state that a job's lines saw.

    Parameters
    ----------
    options : JobOptions
        The job's. Without a parallelism, shuffles make twice as many partitions as there are slots, at most; where they
        are read while they are written, half as many, because both sides need slots. No size is known then that would
        change how the rows are read.
    kept : KeptClones, optional
        The clones of earlier jobs that are planned alike.
    """

    def __init__(self, spark: SparkSession, options: JobOptions, kept: KeptClones | None = None) -> None:
        self._spark = spark
        self._parallelism = options.parallelism
        self.slots = options.slots or spark.sparkContext.defaultParallelism
        self._kept = kept
        self._pipelined = options.exchange == PIPELINED
        self._clones: list[SessionClone] = []

    def of(self, snapshot: SessionSnapshot | None) -> SessionClone:
        """Return the clone for a line's state (None: as the session is now)."""
        for known in self._clones:
            if known.snapshot is snapshot or known.snapshot == snapshot:
                return known
        made = self._made(snapshot) if self._kept is None else self._found_or_made(snapshot, self._kept)
        self._clones.append(replace(made, name=str(len(self._clones))))
        return self._clones[-1]

    def _found_or_made(self, snapshot: SessionSnapshot | None, kept: KeptClones) -> SessionClone:
        now = snapshot or SessionSnapshot.of_facts(capture_reader.session_facts(self._spark))
        clone = kept.find(self._spark._jsparkSession, now)
        if clone is None:
            clone = self._made(now)
            kept.keep(self._spark._jsparkSession, clone)
        return clone if snapshot is not None else replace(clone, snapshot=None)

    def _made(self, snapshot: SessionSnapshot | None) -> SessionClone:
        session = self._spark._jsparkSession.cloneSession()
        state = session.sessionState()
        conf = state.conf()
        if snapshot is not None:
            snapshot.apply_to(conf)
        adapts = bool(conf.adaptiveExecutionEnabled()) and not self._pipelined
        # A number of subtasks that the user gave is used as it is; otherwise it is an upper limit.
        merges = adapts and self._parallelism is None and bool(conf.coalesceShufflePartitionsEnabled())
        conf.setConfString(CHOOSES_JOINS, str(adapts).lower())
        conf.setConfString(MERGES_PARTITIONS, str(merges).lower())
        for key, value in _PLANNING.items():
            conf.setConfString(key, value)
        unless_chosen = _UNLESS_CHOSEN if self._kept is None else {**_UNLESS_CHOSEN, **_UNLESS_CHOSEN_BY_ACTION}
        for key, value in unless_chosen.items():
            if not conf.contains(key):
                conf.setConfString(key, value)
        parallelism = self._shuffle_partitions(conf)
        conf.setConfString(SHUFFLE_PARTITIONS, str(parallelism))
        return SessionClone(snapshot, session, state, parallelism, bool(conf.exchangeReuseEnabled()))

    def parallelism(self) -> int:
        """Return the parallelism of the first state that was asked for."""
        if not self._clones:
            self.of(None)
        return self._clones[0].parallelism

    def plan(self, logical_plan: JavaObject, clone: SessionClone) -> JavaObject:
        """Return the QueryExecution of an analysed plan; a command on top is planned and not run. On 3.5 and 4.x."""
        return query_execution(self._spark._jvm, clone.state, logical_plan)

    def _shuffle_partitions(self, conf: JavaObject) -> int:
        if self._parallelism is not None:
            return self._parallelism
        most = self.slots // 2 if self._pipelined else 2 * self.slots
        return max(1, min(int(conf.numShufflePartitions()), most))
