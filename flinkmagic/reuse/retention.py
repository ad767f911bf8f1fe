"""Decides what one graph's job reuses of earlier ones, and what it leaves for later ones.

The rules, as the code keeps them:

1. A stage whose result is retained under an equal key is not run, nor is what only such stages need. Its vertices are
   known to be finished when the job starts, as those of a finished region are when a job is recovered.
2. A retained result is used only if it is all there and if every file that it was computed from is still what it was.
3. When the job is over, the results of its finished stages are retained, if their keys are still the same then: a file
   or a module that changed while the job ran makes a result that cannot be named.
4. A job that runs under a name ends the life of that name's former results, except those that it uses and those that
   are kept for the session.
5. A write that was finished by a run that *failed* is not run again if its rows, its options and the files of its
   target are still the same, no earlier write to its target runs again, and what overwrote its target later in that run
   is still part of the job and not run again either. After a run that finished, all writes run (`finished_writes`).
6. After a job that was cancelled nothing is retained.
7. With a folder for checkpoints, boundaries and finished writes are looked for there, too (`checkpoints`).
8. A run of some of the sinks leaves alone what is known of the others: results under the keys of their stages are
   retained still, and so are the writes that a failed run had finished. Rules 4 to 6 hold for its own sinks.
9. A run in full uses none of all that; what other graphs have retained stays.
10. Where files were only added to those that a result was made of, it is brought up to date (`append_refresh`).
11. With a durable store, boundaries are looked for there, too, and stored there in time (`durable_rows`): if all that
    they depend on can be seen by later processes, and their files were the same from before the job began.
"""

from __future__ import annotations

import logging
import operator
import time
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.writes.targets import Target, resolve_uri
from flinkmagic.errors.actions import other_file
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.jvm.block_storage import stored_bytes
from flinkmagic.planning.planner import PlannedJob
from flinkmagic.planning.run_origin import GRAPH, RunOrigin
from flinkmagic.planning.stage_handles import StageHandle
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.reuse.append_refresh import AppendRefresh
from flinkmagic.reuse.checkpoints import Checkpoints
from flinkmagic.reuse.driver_broadcasts import DriverBroadcast
from flinkmagic.reuse.durable_keys import durable_keys
from flinkmagic.reuse.finished_writes import WITHOUT_KEY, FinishedWrite, JobWrites
from flinkmagic.reuse.job_rows import JobRows
from flinkmagic.reuse.map_outputs import MapOutputs
from flinkmagic.reuse.result_keys import ChangedFile, NoKey, ResultKey, ResultKeys
from flinkmagic.reuse.retained_results import Appendable, RetainedResult, RetainedResults, retained_results
from flinkmagic.reuse.work_done_before import NOTHING, TakenUp, stage_seconds, vertices_by_handle
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
    from flinkmagic.graph.job_graph import JobVertex
    from flinkmagic.reuse.durable_rows import DurableRows

_LOG = logging.getLogger(__name__)

LOST = "an executor has lost them"
FILES_GONE = "their files are gone"
"""Why kept rows are not used."""


class Retention:
    """The retained results as one job sees them.

    Parameters
    ----------
    retain : {"none", "job", "session"}
        What results are retained for: nothing, later runs under the same name, all later graphs of the session.
    bound : int, optional
        How many bytes may be retained from now on, over all graphs.
    full : bool
        Whether the job computes and writes all, whatever exists already (rule 9).
    refreshes : bool
        Whether what was made of files to which others were added is brought up to date (rule 10).
    durable : DurableRows, optional
        Where boundaries are stored for later processes, and found (rule 11).
    """

    def __init__(
        self,
        sc: SparkContext,
        graph_name: str,
        retain: str,
        bound: int | None = None,
        *,
        full: bool = False,
        refreshes: bool = True,
        durable: DurableRows | None = None,
    ) -> None:
        self._sc = sc
        self._refreshes = refreshes and retain != "none"
        self._refresh: AppendRefresh | None = None
        self._durable = durable if retain != "none" else None
        self._began = time.time()
        self._full = full
        self._origin: RunOrigin = GRAPH
        self._checkpoints: Checkpoints | None = None
        self._results: dict[StageHandle, StageResult] = {}
        self._name = graph_name
        self._retain, self._of_session = retain, retain == "session"
        self._store: RetainedResults = retained_results(sc)
        self._keys: dict[StageHandle, ResultKey] = {}
        self._writes = JobWrites()
        self._keys_left_out: set[str] = set()
        self._taken_up = NOTHING
        self.reasons: dict[str, str] = {}
        """By the name of a stage, why its result has no key and every run computes it."""
        self.not_refreshed: Mapping[str, str] = {}
        """By the name of a stage, why its former rows are not brought up to date."""
        self.not_used: dict[str, str] = {}
        """By the name of a DataFrame, why its kept rows are not used."""
        if bound is not None:
            self._store.set_bound(bound)

    # -- before ----------------------------------------------------------------------------------------

    def take_up(
        self, planned: PlannedJob, graph: ExecutionGraph, kept: JobRows, checkpoints: Checkpoints | None = None
    ) -> TakenUp:
        """Find what exists already, and make the job's plans use it.

        `checkpoints` are where another process recorded, and will find, how far the job came.
        """
        self._checkpoints, self._origin = checkpoints, planned.origin
        if self._retain == "none":
            self._forget()
            if checkpoints is None:
                return NOTHING
        keys, vertex_of = ResultKeys(self._sc, planned.relations), vertices_by_handle(graph)
        changed_file = cache(keys.changed_file)
        named = {one: keys.of_result(one) for one in planned.results}
        self._results = {one.handle: one for one in named}
        self._keys = {one.handle: key for one, key in named.items() if isinstance(key, ResultKey)}
        self._keys_left_out = {key.digest for handle, key in self._keys.items() if handle not in vertex_of}
        self.reasons = {one.handle.name: key.reason for one, key in named.items() if isinstance(key, NoKey)}

        found, missing = self._use_all(() if self._full else vertex_of, kept, changed_file)

        self._refresh = AppendRefresh(self._sc, keys, self._keys)
        formers = self._store.appendable(self._name, of_session=self._of_session) if self._refreshes else []
        self._refresh.bring_up_to_date(found, missing, formers, changed_file)
        self.not_refreshed = self._refresh.reasons
        outputs = MapOutputs(self._sc)
        for result, entry in found.items():
            if result.handle.written is not None:
                # Its readers depend on its size, as they do on that of one that has just been written.
                result.handle.written(outputs.statistics(entry.computed.shuffleDependency()))

        self._writes = JobWrites(planned, self._keys, vertex_of)
        written = self._writes.still_there({} if self._full else self._finished_writes(), keys, changed_file)
        if checkpoints is not None:
            left_out = self._keys_left_out | self._writes.left_out
            checkpoints.begin(left_out, is_part=self._writes.are_some, is_full=self._full)

        self._taken_up = TakenUp.of(graph, found, written, self._refresh)
        needed = self._keys_left_out | {one.key for one in found.values()}
        needed |= {one.former.key for one in self._refresh.refreshed.values()}  # if this job fails, by the next one
        self._store.drop_former(self._name, needed)
        return self._taken_up

    def _use_all(
        self, stages: Container[StageHandle | None], kept: JobRows, changed_file: ChangedFile
    ) -> tuple[dict[StageResult, RetainedResult], list[StageResult]]:
        """Make the job use the results of stages that are there; return them, and those that nobody has."""
        found: dict[StageResult, RetainedResult] = {}
        missing: list[StageResult] = []
        for handle, key in self._keys.items():
            if handle.is_committed or handle not in stages:
                continue
            result = self._results[handle]
            entry = self._find(result, key)
            file = changed_file(key.files) if entry is not None else ""
            if entry is not None and not file and entry.is_there():
                if self._use(result, entry, kept):
                    found[result] = entry
            elif entry is None:
                missing.append(result)
                former = self._store.last_keys.get((self._name, handle.name))
                if former is not None:
                    self.not_used[handle.name] = self._store.why_gone(former, key, changed_file)
            elif handle.keeps_rows and result.sink < 0:
                lost = FILES_GONE if entry.is_from_store else LOST
                self.not_used[handle.name] = other_file(file) if file else lost
        return found, missing

    def _find(self, result: StageResult, key: ResultKey) -> RetainedResult | None:
        entry = self._store.find(self._name, key.digest, of_session=self._of_session)
        if entry is None and self._checkpoints is not None:
            entry = self._checkpoints.find(result, key)
        if entry is None and self._durable is not None:
            entry = self._durable.find(result, key, self._name, for_session=self._of_session)
        return entry

    def _use(self, result: StageResult, entry: RetainedResult, kept: JobRows) -> bool:
        """Make the job use a result; return False if it has just gone."""
        self._store.use(entry)
        if not result.handle.keeps_rows:
            result.adopt(entry.computed)
            return True
        rows = entry.computed.rows
        result.adopt(rows.builder)
        is_there = kept.take_up(result.handle, entry.computed)
        if not entry.name:  # it was made for this job alone, and the store does not hold it
            rows.let_go()
        return is_there

    def _finished_writes(self) -> dict[str, FinishedWrite]:
        """Return, by key, those of the run that failed, here or in another process (rule 5)."""
        finished = dict(self._checkpoints.writes) if self._checkpoints is not None else {}
        return finished | self._store.writes.get(self._name, {})

    def _forget(self) -> None:
        self._store.drop_former(self._name, self._keys_left_out)
        self._remember({})

    def _remember(self, ended: Mapping[str, FinishedWrite]) -> None:
        """Remember finished writes in place of the former ones of the same sinks (rules 5 and 8)."""
        former = self._store.writes.pop(self._name, {})
        kept = {key: write for key, write in former.items() if key in self._writes.left_out}
        if kept or ended:
            self._store.writes[self._name] = {**kept, **ended}

    # -- meanwhile -------------------------------------------------------------------------------------

    def stage_done(self, handle: StageHandle, kept: JobRows) -> None:
        """Write and record what another process would need; on the thread of a stage that is done."""
        key, result = self._keys.get(handle), self._results.get(handle)
        if self._checkpoints is None or result is None:
            return
        if result.over is not None and key is not None:
            self._checkpoints.write_rows(handle, key, kept)
        elif result.target:
            self._record_write(result)

    def _record_write(self, done: StageResult) -> None:
        """Record a write, and what is now in the targets that it may have added to."""
        assert self._checkpoints is not None
        keys, key = ResultKeys(self._sc), self._writes.keys.get(done.sink)
        place = Target(path=resolve_uri(done.target))
        if self._writes.overwrites(done.sink):
            self._checkpoints.record_overwrite(place, key.digest if key is not None else WITHOUT_KEY)
        for target in self._checkpoints.targets:
            is_own = target == done.target and key is not None and key.portable  # recorded with the write
            if not is_own and place.overlaps(Target(path=resolve_uri(target))):
                self._checkpoints.record_target(target, keys.listing(target))
        if key is not None:
            self._checkpoints.record_write(key, done.target, keys.listing(done.target))

    # -- after -----------------------------------------------------------------------------------------

    def retain(
        self,
        planned: PlannedJob,
        graph: ExecutionGraph,
        kept: JobRows,
        status: JobStatus,
        finished: Sequence[int],
        bytes_by_partition: Mapping[str, tuple[int, ...]],
    ) -> None:
        """Retain what the job has computed.

        Parameters
        ----------
        finished : sequence of int
            Indices of the job vertices all of whose subtasks are finished.
        bytes_by_partition : mapping of str to tuple of int
            By the id of a job vertex that wrote a shuffle.
        """
        if self._checkpoints is not None:
            self._checkpoints.job_over(status, self._writes.left_out)
        if self._retain == "none" or status is JobStatus.CANCELED:
            self._forget()
            return
        keys = ResultKeys(self._sc, planned.relations)
        changed_file = cache(keys.changed_file)
        vertex_of = vertices_by_handle(graph)
        seconds = stage_seconds(graph, {index: one.seconds for index, one in self._taken_up.results.items()})
        writes: dict[int, list[str] | None] = {}
        is_failed = status is JobStatus.FAILED
        for result in planned.results:
            index, key = vertex_of.get(result.handle), self._keys.get(result.handle)
            is_empty = result.handle.tasks == 0 and result.kind != "broadcast"  # that may be of rows of the driver
            if index is None or key is None or index not in finished or is_empty:
                continue
            now = keys.of_result(result)
            if isinstance(now, NoKey) or now.digest != key.digest or changed_file(now.files):
                self.reasons[result.handle.name] = "what it was computed from changed while it ran"
            elif result.handle.is_committed:
                if result.target and is_failed:  # else nothing is remembered of a write
                    writes[result.sink] = keys.listing(result.target)
            elif index not in self._taken_up.finished:
                vertex = graph.job_vertices[index]
                self._retain_result(result, vertex, now, keys, kept, bytes_by_partition.get(vertex.id), seconds[index])
        sinks = {vertex_of.get(one.handle): one.sink for one in planned.results if one.handle.is_committed}
        ended = {sinks[vertex] for vertex in finished if vertex in sinks}
        if is_failed and self._durable is not None:
            for one in self._taken_up.results.values():
                self._durable.drop_if_damaged(one)
        self._remember(self._writes.to_remember(writes, ended) if is_failed else {})

    def _durable_key(self, keys: ResultKeys, key: ResultKey) -> str:
        """Return the key of a boundary's rows in later processes; empty if they have none."""
        if self._durable is None or not key.is_durable or not keys.settled(key, self._began):
            return ""
        return durable_keys(self._sc).of(key) or ""

    def _retain_result(
        self,
        result: StageResult,
        vertex: ExecutionJobVertex,
        key: ResultKey,
        keys: ResultKeys,
        kept: JobRows,
        sizes: tuple[int, ...] | None,
        seconds: float,
    ) -> None:
        former = self._taken_up.refreshed.get(vertex.index)
        if former is not None:
            sizes, seconds = former.bytes_with(sizes), seconds + former.former.seconds
        appendable = self._refresh.appendable(result, key, keys) if self._refresh is not None else None
        facts = self._left_by(result, kept, sizes, appendable)
        if facts is not None:
            retained = RetainedResult(
                key.digest, result.kind, self._name, _users_name(vertex.job_vertex), self._of_session,
                bytes_by_partition=sizes, seconds=seconds, of_action=self._origin.collects, appendable=appendable,
                durable_key=self._durable_key(keys, key) if result.over is not None else "", **facts,
            )  # fmt: skip
            self._store.add(retained)
            if self._durable is not None:
                self._durable.store_later(retained)
        if result.handle.keeps_rows and result.sink < 0 and not self._origin.is_line:
            self._store.note_key(self._name, result.handle.name, key)
        if former is not None and result.handle.keeps_rows:  # the rows are kept twice
            self._store.drop(partial(operator.is_, former.former))

    def _left_by(
        self, result: StageResult, kept: JobRows, sizes: tuple[int, ...] | None, appendable: Appendable | None
    ) -> dict[str, Any] | None:
        """Return what a stage has left, and how large it is, as facts of a `RetainedResult`; None if it is gone."""
        if result.handle.keeps_rows:
            left = kept.of(result.handle)
            if left is None or not left.rows.hold():
                return None
            size = stored_bytes(self._sc, left.rows.builder.cachedColumnBuffers().id())
            return {"computed": left, "bytes": size, "is_there": left.rows.are_there, "let_go": left.rows.let_go}
        computed, facts = result.computed(), dict[str, Any]()
        if appendable is not None:
            computed = appendable.exchanges[-1]
            facts["is_there"] = self._are_there([one.shuffleDependency() for one in appendable.exchanges])
        elif result.handle.is_map_stage:
            facts["is_there"] = self._are_there([result.handle.make()])
        if sizes is not None:
            size = sum(sizes)
        else:
            size = facts["driver_bytes"] = _data_size(computed)
        if result.handle.can_shrink:
            broadcast = DriverBroadcast(self._sc, computed)
            size = broadcast.compact_bytes()
            facts["let_go"] = facts["shrink"] = broadcast.shrink  # what was computed with it holds it, too
        return {"computed": computed, "bytes": size, **facts}

    def _are_there(self, dependencies: Sequence[Any]) -> Callable[[], bool]:
        tasks, outputs = [one.rdd().getNumPartitions() for one in dependencies], MapOutputs(self._sc)
        return lambda: all(map(outputs.are_complete, dependencies, tasks))


def _data_size(computed: Any) -> int:
    """Return the size that Spark counted for a broadcast, or for the rows of a subquery."""
    metric = computed.metrics().get("dataSize")
    return int(metric.get().value()) if metric.isDefined() else 0


def _users_name(vertex: JobVertex) -> str:
    """Return what the user calls the last operator of a vertex that has a name, or that is a call of the user's.

    Without any it is the last operator.
    """
    facts = [node.metadata or {} for node in vertex.operators]  # the last one is first
    words = ("name", "variable", "call")
    known = [str(one[word]) for word in words for one in facts if one.get(word)]
    return known[0] if known else str(facts[0].get("operator") or vertex.operators[0].name)
