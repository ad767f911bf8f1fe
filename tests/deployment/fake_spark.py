"""A Spark that a test plays itself: stages are asked for, and the test says what becomes of their tasks."""

from __future__ import annotations

import itertools

from flinkmagic.deployment.session_cluster import SparkResourceManager
from flinkmagic.deployment.spark_job_master import SparkJobMaster
from flinkmagic.deployment.stages.stage_runner import StageOutcome
from flinkmagic.deployment.watching.task_events import (
    ExecutorAdded,
    JobEnded,
    JobStarted,
    Marker,
    StageRef,
    TaskEnded,
    TaskMetrics,
    TaskStarted,
)
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import ChainingStrategy, RuntimeExecutionMode, StreamExchangeMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import (
    MultipleInputTransformation,
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
)
from flinkmagic.planning.stage_handles import (
    Once,
    PipelinedStageHandle,
    Renewable,
    ShuffleMapStageHandle,
    WriteStageHandle,
)
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.main_thread import ManualMainThreadExecutor
from tests.virtual_time import advance, run_until

GONE = "ExecutorLostFailure (executor 1 exited unrelated to the running tasks) Reason: Command exited with code 137"
METRICS = TaskMetrics(10, 20, 30, 40, 0, 0, 5, 0, 1)


def map_handle(name, tasks, *, early=False):
    return ShuffleMapStageHandle(name=name, tasks=tasks, starts_jobs_early=early, made=Renewable(lambda: None))


class FakeDependency:
    """Takes the place of a shuffle's dependency."""

    numbers = itertools.count(1)

    def __init__(self):
        self._number = next(self.numbers)

    def shuffleId(self):  # noqa: N802 - Spark's name
        return self._number


def pipelined_handle(name, tasks):
    handle = PipelinedStageHandle(name=name, tasks=tasks, made=Renewable(FakeDependency))
    assert handle.make() is not None
    return handle


def write_handle(name, tasks, *, exact=True):
    return WriteStageHandle(
        name=name, tasks=tasks, exact=exact, query_execution=None, user_write=None, made=Renewable(lambda: None)
    )


def graph_of(vertices):
    """An execution graph of ``{name: (tasks, inputs)}``, all exchanges blocking; what no other reads is a write.

    An input ``"~Map"`` is in the same stage, in a vertex of its own; ``"=Map"`` is read while it is written.
    """
    read = {name.lstrip("~=") for _, inputs in vertices.values() for name in inputs}
    within = {name[1:] for _, inputs in vertices.values() for name in inputs if name.startswith("~")}
    pipelined = {name[1:] for _, inputs in vertices.values() for name in inputs if name.startswith("=")}
    environment = StreamExecutionEnvironment("job", RuntimeExecutionMode.BATCH, 1)
    made = {}
    for name, (tasks, inputs) in vertices.items():
        handle = map_handle(name, tasks) if name in read else write_handle(name, tasks)
        if name in pipelined:
            handle = pipelined_handle(name, tasks)
        elif name not in read:
            handle.upstream = tuple(_upstream(name, vertices, made))
        facts = {"parallelism": tasks, "operator_factory": None if name in within else handle}
        sources = [_edge(made[each.lstrip("~=")], each) for each in inputs]
        if any(each.startswith("~") for each in inputs):
            facts["chaining_strategy"] = ChainingStrategy.HEAD
        if not sources:
            made[name] = SourceTransformation(name, **facts)
        elif name not in read and len(sources) == 1:
            made[name] = SinkTransformation(sources[0], name, **facts)
        elif len(sources) == 1:
            made[name] = OneInputTransformation(sources[0], name, **facts)
        else:
            made[name] = MultipleInputTransformation(sources, name, **facts)
        if inputs:
            environment.add_operator(made[name])
    return ExecutionGraph(create_job_graph(environment.get_stream_graph()))


def _upstream(name, vertices, made):
    for each in vertices[name][1]:
        if each.startswith("="):
            yield made[each[1:]].operator_factory
            yield from _upstream(each[1:], vertices, made)


def _edge(upstream, name):
    if name.startswith("="):
        return PartitionTransformation(upstream, PartitionerKind.HASH, StreamExchangeMode.PIPELINED)
    if name.startswith("~"):
        return PartitionTransformation(upstream, PartitionerKind.FORWARD, StreamExchangeMode.PIPELINED)
    return PartitionTransformation(upstream, PartitionerKind.HASH)


class FakeStage:
    """Takes the place of `StageRun`."""

    def __init__(self, handle, tag, description, place, earlier, on_outcome):
        self.handle, self.tag, self.description, self.on_outcome = handle, tag, description, on_outcome
        self.place, self.earlier = place, earlier
        self.started = self.waits = self.is_cancelled = self.over = False
        self.cancels = 0
        self.waiting_for = ""
        self.has_no_tasks = False
        self.stage_id = None
        self.job_id = None

    def start(self, turn=None):
        self.started = True
        self.waits = turn is not None

    def cancel(self):
        self.is_cancelled = True
        self.cancels += 1

    def tasks_over(self):
        self.has_no_tasks = True

    def join(self, timeout_s):
        return True


class FakeSlots:
    """Takes the place of `SessionSlots`."""

    def __init__(self, total):
        self.total = total
        self.lost = set()

    def is_active(self, executor):
        return executor not in self.lost

    def of(self, executor):
        return self.total

    def refresh(self):
        pass

    def take(self, event):
        self.total += event.cores if isinstance(event, ExecutorAdded) else 0


class FakeMonitor:
    """Takes the place of `TaskMonitor`."""

    def __init__(self):
        self.flushed = []

    def await_submission(self, tags, timeout_ms):
        pass

    def flush(self, token):
        self.flushed.append(token)


class FakeSpark:
    """A deployment's inner parts, with time and Spark in the hands of the test."""

    def __init__(self, vertices, *, slots=None, session_slots=4, after=None, restart_strategy=None):
        self.clock = ManualClock(1000.0)
        self.main_thread = ManualMainThreadExecutor(self.clock)
        self.graph = graph_of(vertices)
        self.by_name = {vertex.name.removeprefix("Source: ").removeprefix("Sink: "): vertex for vertex in
                        self.graph.job_vertices}  # fmt: skip
        self.stages = []
        self.monitor = FakeMonitor()
        self.session_slots = FakeSlots(session_slots)
        self.overs = 0
        index = {name: vertex.index for name, vertex in self.by_name.items()}
        self.resource_manager = SparkResourceManager(self.session_slots)
        self.job_master = SparkJobMaster(
            self.graph,
            job_name="job",
            prefix="t-",
            main_thread=self.main_thread,
            clock=self.clock,
            event_log=JobEventLog(self.clock),
            monitor=self.monitor,
            session_slots=self.session_slots,
            make_stage=self._make,
            resource_manager=self.resource_manager,
            slots=slots,
            after={index[later]: [index[one] for one in earlier] for later, earlier in (after or {}).items()},
            restart_strategy=restart_strategy,
            on_over=self._on_over,
        )
        self.drive, self.scheduler = self.job_master.drive, self.job_master.scheduler
        self._ids = itertools.count(1)
        self._attempts = {}
        self._member_stages = {}
        self.main_thread.execute(self.job_master.start)
        self.settle()

    def _make(self, *arguments):
        self.stages.append(FakeStage(*arguments))
        return self.stages[-1]

    def _on_over(self, info):
        self.overs += 1
        self.drive.close()

    # -- what the test does ----------------------------------------------------------------------------

    def settle(self):
        while self.main_thread.next_due_ms <= self.clock.now_ms():
            self.main_thread.run_next()
            self.drive.state.validate()

    def pass_time(self, ms):
        run_until(self.main_thread, self.clock.now_ms() + ms)

    def active_runs(self):
        return list(self.drive.state.active.values())

    def running(self):
        """The names of the vertices that Spark was asked for and that are not over."""
        return [stage.handle.name for stage in self.stages if stage.started and not stage.over]

    def stage(self, name):
        """The last stage of a vertex."""
        return [stage for stage in self.stages if stage.handle.name == name][-1]

    def state(self, name):
        vertex = self.by_name[name]
        return [self.graph.state_of(index).name for index in vertex.vertices]

    def say(self, *events):
        self.drive.handle(events)
        self.drive.state.validate()
        self.settle()

    def job_started(self, name, *, tasks=None, shuffle_id=None):
        stage = self.stage(name)
        stage.stage_id, stage.job_id = next(self._ids), next(self._ids)
        is_map = isinstance(stage.handle, ShuffleMapStageHandle)
        shuffle = (shuffle_id or stage.stage_id) if is_map else None
        ref = StageRef(stage.stage_id, shuffle, self.by_name[name].parallelism if tasks is None else tasks)
        self.say(JobStarted(stage.job_id, stage.tag, (ref,)))

    def region_started(self, name):
        """Spark's job of a pipelined region has started; the tasks of its stages are launched by their names."""
        first = self.stage(name)
        first.job_id = next(self._ids)
        upstream = [(one.name, one.shuffle_id) for one in reversed(first.handle.upstream)]
        refs = []
        for member, shuffle in [*upstream, (name, None)]:
            self._member_stages[member] = next(self._ids)
            refs.append(StageRef(self._member_stages[member], shuffle, self.by_name[member].parallelism))
        first.stage_id = self._member_stages[name]
        self.say(JobStarted(first.job_id, first.tag, tuple(refs)))

    def launch_in_region(self, name, partition, *, executor="1"):
        advance(self.clock, 1)
        stage = self._member_stages[name]
        task = TaskStarted(stage, 0, partition, 0, next(self._ids), executor, self.clock.now_ms(), False)
        self.say(task)
        return task

    def merged(self, name, tasks):
        """Spark's tasks of a stage read several partitions each."""
        self.stage(name).handle.merged = Once.of(tasks)
        self.job_started(name, tasks=tasks)

    def launch(self, name, partition, *, executor="1", speculative=False):
        stage = self.stage(name)
        attempt = self._attempts.setdefault((stage.tag, partition), itertools.count())
        advance(self.clock, 1)
        task = TaskStarted(
            stage.stage_id, 0, partition, next(attempt), next(self._ids), executor, self.clock.now_ms(), speculative
        )
        self.say(task)
        return task

    def end(self, task, status="SUCCESS", error="boom"):
        advance(self.clock, 1)
        failed = status != "SUCCESS"
        self.say(
            TaskEnded(
                task,
                self.clock.now_ms(),
                status,
                None if failed else METRICS,
                "ExceptionFailure" if failed else "",
                error if failed else "",
            )
        )

    def lose(self, task, reason="ExecutorLostFailure", error=GONE):
        advance(self.clock, 1)
        self.say(TaskEnded(task, self.clock.now_ms(), "FAILED", None, reason, error))

    def conclude(self, name, error=None, **facts):
        """The stage's thread ends, and all that Spark said before it is heard."""
        stage = self.stage(name)
        if stage.job_id is not None:
            self.say(JobEnded(stage.job_id, error is None))
        stage.over = True
        stage.on_outcome(stage, StageOutcome(error=error, **facts))
        self.settle()
        self.say(Marker(self.monitor.flushed.pop()))

    def run_missing(self, name, partitions):
        """A stage of which Spark has kept the rest."""
        self.job_started(name)
        for task in [self.launch(name, partition) for partition in partitions]:
            self.end(task)
        self.conclude(name)

    def run(self, name):
        """The whole life of a vertex's stage, without an accident."""
        self.job_started(name)
        stage_subtasks = range(self.by_name[name].parallelism)
        for task in [self.launch(name, partition) for partition in stage_subtasks]:
            self.end(task)
        self.conclude(name)
