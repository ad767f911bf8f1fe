"""Reads the events of an application: its executors, SQL executions, Spark jobs, stages and tasks.

Source: Spark's `JsonProtocol` (3.0 to 4.x), which writes one JSON object a line. An event is told by the first bytes of
its line; one that nothing here needs is not parsed. Plans are kept as they were written, and read with their job: an
adaptive execution writes its plan each time that it changes, and only the last one counts.
"""

from __future__ import annotations

import functools
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flinkmagic.amounts import count
from flinkmagic.deployment import TaskRecord
from flinkmagic.deployment.stages.stage_place import PROPERTY, StagePlace
from flinkmagic.deployment.watching.call_events import CallEvents
from flinkmagic.errors.history import NoEventLogError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.history.event_files import EventLog

Event = Mapping[str, Any]

_SQL = "org.apache.spark.sql.execution.ui."
_EVENT = b'{"Event":"'
_EXECUTION_ID = re.compile(rb'"executionId":(\d+)')
WRONG = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""What an event raises that is not made as Spark makes it."""
_END_OF_TIME_MS = 1e13
"""No event is of a later time, in the year 2286; a simulation would not come to an end."""
_ERROR_LENGTH = 2000
"""How much of an error's text is kept."""


@dataclass
class LoggedStage:
    """A stage, with all of its attempts."""

    id: int
    name: str = ""
    parents: tuple[int, ...] = ()
    rdds: tuple[int, ...] = ()
    """The ids of its RDDs: stages that share them all compute the same."""
    place: StagePlace | None = None
    """Where it stands in a run of flinkmagic's."""
    scopes: tuple[str, ...] = ()
    """What made its RDDs, the first one first: ``parallelize``, ``WholeStageCodegen (1)``, ``Exchange``."""
    caches: frozenset[tuple[str, int]] = frozenset()
    """The ids of its RDDs that Spark keeps, each with what made an RDD that reads it: ``InMemoryTableScan``."""
    metrics: dict[int, int] = field(default_factory=dict)
    """By their accumulators' ids what its SQL operators have measured, once it is over."""
    tasks: list[TaskRecord] = field(default_factory=list)
    """The attempts, without their vertex, in the order in which they ended; running ones last."""


@dataclass
class LoggedJob:
    """A Spark job."""

    id: int
    stages: tuple[int, ...]
    execution: int | None
    """The SQL execution that it belongs to."""
    description: str
    call: str
    """Where it was called: what Spark's UI shows as details."""
    place: StagePlace | None
    """Of its last stage, in a run of flinkmagic's."""
    started_ms: float
    ended_ms: float | None = None
    error: str | None = None
    """Why it failed; None unless it has."""


@dataclass
class LoggedExecution:
    """A SQL execution: an action, or a write, of a DataFrame."""

    id: int
    root: int
    """The execution that needs it; itself, unless it is a part of another one."""
    description: str
    started_ms: float
    ended_ms: float | None = None
    error: str | None = None
    plan: bytes = b""
    """The last event that has its plan; deflated, unless it is not over."""
    driver_metrics: dict[int, int] = field(default_factory=dict)

    def plan_event(self) -> Event | None:
        """Return the last event that has the plan; raise one of `WRONG` if it is not made as Spark makes it."""
        if not self.plan:
            return None
        return json.loads(self.plan if self.plan.startswith(b"{") else zlib.decompress(self.plan))


@dataclass
class Application:
    """What the log of an application tells."""

    name: str
    id: str = ""
    spark_version: str = ""
    started_ms: float = 0.0
    last_ms: float = 0.0
    """The time of the last event."""
    is_over: bool = False
    cores: list[tuple[float, int]] = field(default_factory=list)
    """When cores came (positive) and went."""
    cpus_per_task: int = 1
    executions: dict[int, LoggedExecution] = field(default_factory=dict)
    jobs: dict[int, LoggedJob] = field(default_factory=dict)
    stages: dict[int, LoggedStage] = field(default_factory=dict)
    cache_reads: Counter[int] = field(default_factory=Counter)
    """By the ids of RDDs that Spark keeps how many stages have used each: the one that fills it, and those that read
    it."""
    dropped: set[int] = field(default_factory=set)
    """The ids of RDDs that Spark keeps no longer."""
    is_whole: bool = True
    """Whether no event before the last one is missing."""
    notes: list[str] = field(default_factory=list)
    """What could not be read."""

    def reads_of_dropped(self, cache: int) -> int | None:
        """Return how many stages have used a cache that was dropped, at the latest with the application.

        None while a later one may use it, or if the log may miss one that has.
        """
        is_known = self.is_whole and (self.is_over or cache in self.dropped)
        return self.cache_reads[cache] if is_known else None

    def slots(self, begin_ms: float, end_ms: float) -> int:
        """Return how many tasks could run simultaneously at most between two times; 0 if it is not known."""
        now = most = 0
        for at_ms, change in sorted(self.cores):
            if at_ms > end_ms:
                break
            if at_ms >= begin_ms:
                most = max(most, now)
            now += change
        return max(most, now) // self.cpus_per_task


def read_application(log: EventLog) -> Application:
    """Read a log, as far as it goes.

    Raises
    ------
    LogCodecError
        If it is compressed in a way that cannot be read here.
    NoEventLogError
        If none of its lines is an event.
    """
    return _Reader(log.name).read(log)


def reported(call: CallEvents) -> Application:
    """Return what Spark has reported of one call, as if it were the log of an application."""
    reader = _Reader("")
    for line in call.lines:
        reader.take(line)
    for task in call.tasks:
        has_output = task.rows_out or task.bytes_out
        known = task if has_output else task._replace(rows_out=None, bytes_out=task.result_bytes)
        reader.stage(task.stage).tasks.append(known)
    app = reader.app
    app.started_ms, app.last_ms = call.began_ms, call.ended_ms
    app.is_whole = False  # what other calls did is not in it
    app.cores = [(call.began_ms, call.slots)]
    return app


class _Reader:
    """Keeps what the events tell, in their order."""

    def __init__(self, name: str) -> None:
        self.app = Application(name)
        self._running: dict[int, tuple[int, TaskRecord]] = {}
        """By the ids of tasks that run: their stage, and what is known of them."""
        self._attempts: Counter[tuple[int, int]] = Counter()
        self._executors: dict[str, int] = {}
        self._last = b""
        self._handlers: dict[bytes, Callable[[Event], None]] = {
            b"SparkListenerLogStart": self._log_start,
            b"SparkListenerApplicationStart": self._application_start,
            b"SparkListenerApplicationEnd": self._application_end,
            b"SparkListenerEnvironmentUpdate": self._environment,
            b"SparkListenerExecutorAdded": self._executor_added,
            b"SparkListenerExecutorRemoved": self._executor_removed,
            b"SparkListenerJobStart": self._job_start,
            b"SparkListenerJobEnd": self._job_end,
            b"SparkListenerStageSubmitted": self._stage_submitted,
            b"SparkListenerStageCompleted": self._stage_completed,
            b"SparkListenerUnpersistRDD": self._unpersist,
            b"SparkListenerTaskStart": self._task_start,
            b"SparkListenerTaskEnd": self._task_end,
            f"{_SQL}SparkListenerSQLExecutionStart".encode(): self._execution_start,
            f"{_SQL}SparkListenerSQLExecutionEnd".encode(): self._execution_end,
            f"{_SQL}SparkListenerDriverAccumUpdates".encode(): self._driver_metrics,
        }
        self._plan_update = f"{_SQL}SparkListenerSQLAdaptiveExecutionUpdate".encode()

    def read(self, log: EventLog) -> Application:
        app = self.app
        known = wrong = 0
        line = b""
        for line in log.lines():
            try:
                known += self.take(line)
            except WRONG:
                wrong += 1
        if not known:
            raise NoEventLogError(log.files[0])
        if wrong and not line.endswith(b"\n") and not log.notes:
            wrong -= 1
            log.notes.append("the log ends in the middle of an event")
        for stage, task in self._running.values():
            self.stage(stage).tasks.append(task)
        app.notes = log.notes
        app.is_whole = not (wrong or log.notes or log.is_compacted)
        if wrong:
            app.notes.append(f"{count(wrong, 'line')} could not be read as events")
        if not app.is_over:
            app.notes.append("the application had not ended when the log was last written")
        return app

    def take(self, line: bytes) -> bool:
        """Take a line; return whether it is an event."""
        if line.startswith(_EVENT):
            name = line[len(_EVENT) : line.index(b'"', len(_EVENT))]
        elif line.strip():
            name = str(json.loads(line)["Event"]).encode()
        else:
            return False
        if name == self._plan_update:
            found = _EXECUTION_ID.search(line)
            if found is not None and int(found[1]) in self.app.executions:
                self.app.executions[int(found[1])].plan = line
            return True
        handle = self._handlers.get(name)
        if handle is not None:
            self._last = line
            handle(json.loads(_without_accumulables(line) if name == b"SparkListenerTaskEnd" else line))
        return True

    def _at(self, ms: float) -> float:
        """Return a time, having noted that something happened then."""
        if not 0 <= ms < _END_OF_TIME_MS:
            raise ValueError(ms)
        self.app.last_ms = max(self.app.last_ms, ms)
        return float(ms)

    # -- the application ------------------------------------------------------------------------------------

    def _log_start(self, event: Event) -> None:
        self.app.spark_version = str(event["Spark Version"])

    def _application_start(self, event: Event) -> None:
        self.app.name = str(event["App Name"])
        self.app.id = str(event.get("App ID") or "")
        self.app.started_ms = self._at(event["Timestamp"])

    def _application_end(self, event: Event) -> None:
        self._at(event["Timestamp"])
        self.app.is_over = True

    def _environment(self, event: Event) -> None:
        cpus = event["Spark Properties"].get("spark.task.cpus", "1")
        self.app.cpus_per_task = max(1, int(cpus))

    def _executor_added(self, event: Event) -> None:
        cores = int(event["Executor Info"]["Total Cores"])
        self._executors[str(event["Executor ID"])] = cores
        self.app.cores.append((self._at(event["Timestamp"]), cores))

    def _executor_removed(self, event: Event) -> None:
        cores = self._executors.pop(str(event["Executor ID"]), 0)
        self.app.cores.append((self._at(event["Timestamp"]), -cores))

    # -- SQL executions -------------------------------------------------------------------------------------

    def _execution_start(self, event: Event) -> None:
        number = int(event["executionId"])
        root = event.get("rootExecutionId")
        self.app.executions[number] = LoggedExecution(
            id=number,
            root=number if root is None else int(root),
            description=str(event.get("description") or ""),
            started_ms=self._at(event["time"]),
            plan=self._last,
        )

    def _execution_end(self, event: Event) -> None:
        execution = self.app.executions[int(event["executionId"])]
        execution.ended_ms = self._at(event["time"])
        execution.error = str(event.get("errorMessage") or "")[:_ERROR_LENGTH] or None
        if execution.plan.startswith(b"{"):
            execution.plan = zlib.compress(execution.plan, 1)

    def _driver_metrics(self, event: Event) -> None:
        execution = self.app.executions[int(event["executionId"])]
        execution.driver_metrics.update((int(number), int(value)) for number, value in event["accumUpdates"])

    # -- Spark jobs and stages ------------------------------------------------------------------------------

    def _job_start(self, event: Event) -> None:
        properties = event.get("Properties") or {}
        execution = properties.get("spark.sql.execution.id")
        for info in event.get("Stage Infos") or ():
            self._note_stage(info)
        number, stages = int(event["Job ID"]), tuple(int(stage) for stage in event["Stage IDs"])
        place = StagePlace.read(str(properties.get(PROPERTY) or ""))
        if place is not None and stages:
            self.stage(max(stages)).place = place
        described = properties.get("spark.job.description") or properties.get("callSite.short") or ""
        self.app.jobs[number] = LoggedJob(
            id=number,
            stages=stages,
            execution=None if execution is None else int(execution),
            description=str(described),
            call=str(properties.get("callSite.long") or ""),
            place=place,
            started_ms=self._at(event["Submission Time"]),
        )

    def _job_end(self, event: Event) -> None:
        job = self.app.jobs[int(event["Job ID"])]
        job.ended_ms = self._at(event["Completion Time"])
        result = event["Job Result"]
        if result["Result"] != "JobSucceeded":
            job.error = str((result.get("Exception") or {}).get("Message") or "it failed")[:_ERROR_LENGTH]

    def _note_stage(self, info: Event) -> LoggedStage:
        stage = self.stage(int(info["Stage ID"]))
        stage.name = str(info.get("Stage Name") or "")
        stage.parents = tuple(int(parent) for parent in info.get("Parent IDs") or ())
        rdds = sorted(info.get("RDD Info") or (), key=lambda rdd: int(rdd["RDD ID"]))
        stage.rdds = tuple(int(rdd["RDD ID"]) for rdd in rdds)
        stage.scopes = tuple(dict.fromkeys(_scope(rdd) for rdd in rdds))
        stage.caches = _caches(rdds)
        return stage

    def stage(self, number: int) -> LoggedStage:
        known = self.app.stages.get(number)
        if known is None:
            known = self.app.stages[number] = LoggedStage(number)
        return known

    def _stage_submitted(self, event: Event) -> None:
        info = event["Stage Info"]
        self._note_stage(info)
        self._at(info.get("Submission Time") or self.app.last_ms)

    def _stage_completed(self, event: Event) -> None:
        info = event["Stage Info"]
        stage = self._note_stage(info)
        self._at(info.get("Completion Time") or 0.0)
        for one in info.get("Accumulables") or ():
            if one.get("Metadata") == "sql":
                stage.metrics[int(one["ID"])] = int(one["Value"])
        if not info.get("Failure Reason"):
            self.app.cache_reads.update(_kept(info.get("RDD Info") or ()))

    def _unpersist(self, event: Event) -> None:
        self.app.dropped.add(int(event["RDD ID"]))

    # -- tasks ----------------------------------------------------------------------------------------------

    def _task_start(self, event: Event) -> None:
        task = self._record(event)
        self._running[task.task_id] = (task.stage, task)

    def _record(self, event: Event) -> TaskRecord:
        info = event["Task Info"]
        stage, partition = int(event["Stage ID"]), int(info.get("Partition ID", info["Index"]))
        attempt = self._attempts[stage, partition]
        self._attempts[stage, partition] += 1
        executor = str(info["Executor ID"])
        return TaskRecord(
            vertex_id="",
            vertex="",
            subtask=partition,
            attempt=attempt,
            state=ExecutionState.RUNNING,
            slot=executor,
            executor=executor,
            start_ms=self._at(info["Launch Time"]),
            stage=stage,
            stage_attempt=int(event.get("Stage Attempt ID") or 0),
            task_id=int(info["Task ID"]),
            speculative=bool(info.get("Speculative")),
        )

    def _task_end(self, event: Event) -> None:
        info, reason = event["Task Info"], event["Task End Reason"]
        kind = str(reason["Reason"])
        number = int(info["Task ID"])
        stage = self.stage(int(event["Stage ID"]))
        if kind == "Resubmitted":
            stage.tasks = [task._replace(reason=kind) if task.task_id == number else task for task in stage.tasks]
            return
        _, task = self._running.pop(number, (0, None))
        task = task or self._record(event)
        end_ms = max(task.start_ms, self._at(info["Finish Time"]))
        is_killed = kind == "TaskKilled" or bool(info.get("Killed"))
        ended = ExecutionState.CANCELED if is_killed else ExecutionState.FAILED
        stage.tasks.append(
            task._replace(
                state=ExecutionState.FINISHED if kind == "Success" else ended,
                end_ms=end_ms,
                error="" if kind == "Success" else _error(kind, reason),
                reason="" if kind == "Success" else kind,
                **_measures(event.get("Task Metrics")),
            )
        )


def _without_accumulables(line: bytes) -> bytes:
    """Return the event of a task's end without its accumulators, which are most of it.

    What a stage's tasks have added up is in the end of their stage. A quotation mark within a text has a backslash
    before it, so that the two places that are looked for are keys.
    """
    begin = line.find(b'"Accumulables":[')
    end = line.find(b']},"Task Executor Metrics"', begin)
    end = end if end >= 0 else line.find(b']},"Task Metrics"', begin)
    return line if begin < 0 or end < 0 else line[: begin + 16] + line[end:]


def _scope(rdd: Event) -> str:
    return str(_scope_name(rdd.get("Scope")) or rdd.get("Name") or "RDD")


@functools.lru_cache(maxsize=1024)
def _scope_name(scope: str | None) -> Any:
    """Return the name in a scope; three events of a stage have the same scopes."""
    return json.loads(scope).get("name") if scope else None


def _kept(rdds: Iterable[Event]) -> set[int]:
    """Return the ids of those RDDs that Spark keeps."""
    levels = ((rdd["RDD ID"], rdd.get("Storage Level") or {}) for rdd in rdds)
    return {int(number) for number, level in levels if level.get("Use Memory") or level.get("Use Disk")}


def _caches(rdds: Iterable[Event]) -> frozenset[tuple[str, int]]:
    kept = _kept(rdds)
    if not kept:
        return frozenset()
    reads = ((rdd, int(parent)) for rdd in rdds for parent in rdd.get("Parent IDs") or ())
    return frozenset((_scope(rdd), parent) for rdd, parent in reads if parent in kept)


def _error(kind: str, reason: Event) -> str:
    what = f"{reason.get('Class Name') or kind}: {reason.get('Description') or reason.get('Loss Reason') or ''}"
    return what.rstrip(": ")[:_ERROR_LENGTH]


def _measures(metrics: Event | None) -> dict[str, Any]:
    """Return what a task has measured, in the fields of its record."""
    if not metrics:
        return {}
    read, shuffled = metrics.get("Input Metrics") or {}, metrics.get("Shuffle Read Metrics") or {}
    wrote, shuffling = metrics.get("Output Metrics") or {}, metrics.get("Shuffle Write Metrics") or {}
    bytes_out = int(wrote.get("Bytes Written", 0)) + int(shuffling.get("Shuffle Bytes Written", 0))
    rows_out = int(wrote.get("Records Written", 0)) + int(shuffling.get("Shuffle Records Written", 0))
    return {
        "rows_in": int(read.get("Records Read", 0)) + int(shuffled.get("Total Records Read", 0)),
        # What goes to the driver, a result or a broadcast, is no output of Spark's: it is not counted in rows.
        "rows_out": rows_out if rows_out or bytes_out else None,
        "bytes_in": int(read.get("Bytes Read", 0))
        + int(shuffled.get("Local Bytes Read", 0))
        + int(shuffled.get("Remote Bytes Read", 0)),
        "bytes_out": bytes_out or int(metrics.get("Result Size", 0)),
        "memory_spilled_bytes": int(metrics.get("Memory Bytes Spilled", 0)),
        "disk_spilled_bytes": int(metrics.get("Disk Bytes Spilled", 0)),
        "run_ms": int(metrics.get("Executor Run Time", 0)),
        "gc_ms": int(metrics.get("JVM GC Time", 0)),
        "fetch_wait_ms": int(shuffled.get("Fetch Wait Time", 0)),
        "shuffle_write_ms": int(shuffling.get("Shuffle Write Time", 0)) // 1_000_000,
    }
