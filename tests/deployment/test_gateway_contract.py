"""Spark's executors, through the gateway, keep what every gateway must keep: with tasks that Spark really runs."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from flinkmagic.deployment.board.drive import StageDrive
from flinkmagic.deployment.board.rules import StageBoard
from flinkmagic.deployment.board.state import BoardState
from flinkmagic.deployment.stages.observations import Observations
from flinkmagic.deployment.stages.spark_jobs import JobProperties
from flinkmagic.deployment.stages.stage_runner import StageRun, StageRunner
from flinkmagic.deployment.watching.session_slots import SessionSlots
from flinkmagic.deployment.watching.task_events import Marker
from flinkmagic.deployment.watching.task_monitor import TaskMonitor
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan
from flinkmagic.reuse.job_rows import JobRows
from flinkmagic.scheduling.clock import SystemClock
from flinkmagic.scheduling.failover.restart_strategy import NoRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.main_thread import MainThreadExecutor
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotRequest
from flinkmagic.scheduling.task_executor_gateway import TaskDeploymentDescriptor

PATH = Path(__file__).parents[1] / "scheduling" / "gateway_contract.py"
specification = importlib.util.spec_from_file_location("gateway_contract", PATH)
contract = importlib.util.module_from_spec(specification)
specification.loader.exec_module(contract)

DEADLINE_S = 30.0
SETTLED = "settled"


def behaviour_of(name, deployed):
    """What a task does: nothing before the file `deployed` is there. Spark launches first, and then it is deployed."""

    def finish(number):
        while not os.path.exists(deployed):
            time.sleep(0.01)
        return number

    def fail(number):
        finish(number)
        raise ValueError(f"{number} is broken")

    def hang(number):
        time.sleep(600)
        return number

    return F.udf({"finish": finish, "fail": fail, "hang": hang}[name], LongType())


class SparkHarness:
    """Jobs of one task each on a real session; this object stands where the scheduler does."""

    def __init__(self, spark, deployed):
        self.spark = spark
        self._deployed = deployed
        self.news = []
        self.heartbeats = 0
        self.event_log = JobEventLog(SystemClock())
        self._condition = threading.Condition()
        self._settled = threading.Event()
        self._main_thread = MainThreadExecutor("gateway-contract", SystemClock(), self._uncaught)
        self._uncaught_errors = []
        self._is_closed = False
        # One job with a result for each behaviour: its vertices are told apart by their ids.
        frames = {
            f"{name}{copy}": spark.range(1).coalesce(1).select(behaviour_of(name, str(deployed))("id"))
            for name in ("finish", "fail", "hang")
            for copy in range(2)
        }
        self._unused = list(frames)
        self._planned = plan(frames, JobOptions(parallelism=1))
        self._graph = ExecutionGraph(create_job_graph(self._planned.environment.get_stream_graph()))
        by_node = {node.id: vertex for vertex in self._graph.job_vertices for node in vertex.job_vertex.operators}
        self._vertices = {sink.name: by_node[sink.transformation_id] for sink in self._planned.sinks}
        prefix = f"contract-{id(self):x}-"
        self._monitor = TaskMonitor(spark.sparkContext, prefix)
        self._kept = JobRows(spark)
        properties = JobProperties(spark.sparkContext, prefix, prefix)
        runner = StageRunner(
            spark.sparkContext, self._planned.session_clone, properties, self._kept, Observations(spark)
        )
        self._drive = StageDrive(
            self,
            self._graph,
            StageBoard(BoardState(self._graph, prefix, self.event_log)),
            job_name="job",
            main_thread=self._main_thread,
            clock=SystemClock(),
            event_log=self.event_log,
            monitor=self._monitor,
            session_slots=SessionSlots(spark.sparkContext),
            make_stage=partial(StageRun, runner),
            restart_strategy=NoRestartBackoffTimeStrategy(),
            on_idle=lambda: None,
        )
        self._drive.create_slot_pool_service(lambda _required: None)
        self._drive.scheduler = self
        self._monitor.start(
            lambda events: self._is_closed or self._main_thread.execute(lambda: self._handle(events)),
            self._uncaught_errors.append,
        )

    def _handle(self, events):
        self._drive.handle([event for event in events if event != Marker(SETTLED)])
        if Marker(SETTLED) in events:
            self._settled.set()

    # What is said to a job master.

    def update_task_execution_state(self, transition):
        with self._condition:
            self.news.append(transition)
            self._condition.notify_all()
        return True

    def register_task_manager(self, resource_id, gateway):
        self._registered = (resource_id, gateway)

    def offer_slots(self, resource_id, offers):
        assert resource_id == self._registered[0]
        return self._drive.offer_slots(offers, *self._registered)

    def heartbeat_from_task_manager(self, executor):
        with self._condition:
            self.heartbeats += 1
            self._condition.notify_all()

    def _uncaught(self, error):
        self._uncaught_errors.append(error)

    # The harness.

    @property
    def gateway(self):
        return self._drive.gateway_of("driver")

    def descriptor(self, behaviour):
        """Spark gives a slot by launching the task: it is launched here, and deployed by the test."""
        name = next(name for name in self._unused if name.startswith(behaviour))
        self._unused.remove(name)
        vertex = self._vertices[name]
        request = PhysicalSlotRequest(f"request-{vertex.index}", (vertex.first,))
        launched = threading.Event()
        slots = []

        def given(slot, error):
            slots.append(slot)
            launched.set()

        request.slot_future.when_complete(given)

        self._deployed.unlink(missing_ok=True)
        self._main_thread.execute(lambda: self._drive.allocate_physical_slots([request]))
        assert launched.wait(DEADLINE_S)
        (slot,) = slots
        assert slot is not None
        return TaskDeploymentDescriptor(
            "job", ExecutionAttemptID(vertex.id, 0, 0), vertex.first, vertex.task_name(0), slot.allocation_id,
        )  # fmt: skip

    def call(self, gateway_call):
        done = threading.Event()
        errors = []

        def run():
            try:
                gateway_call()
                self._deployed.touch()
            except Exception as error:  # noqa: BLE001 - raised again on the test's own thread
                errors.append(error)
            finally:
                done.set()

        self._main_thread.execute(run)
        assert done.wait(DEADLINE_S)
        if errors:
            raise errors[0]

    def wait(self, attempt_id, state):
        with self._condition:
            arrived = self._condition.wait_for(
                lambda: any(news.attempt_id == attempt_id and news.state is state for news in self.news), DEADLINE_S
            )
        assert arrived, f"{attempt_id} never told of {state.name}: {self.news}"

    def settle(self):
        """Spark has said all that it had to say, and it was heard."""
        self._settled.clear()
        self._monitor.flush(SETTLED)
        assert self._settled.wait(DEADLINE_S)
        self.call(lambda: None)

    def close(self):
        deadline = time.monotonic() + DEADLINE_S
        active = self._drive.state.active
        for run in list(active.values()):
            self._drive._stages[run.tag].cancel()
        while active and time.monotonic() < deadline:
            time.sleep(0.02)
        self.call(lambda: None)
        self._monitor.stop()
        self._is_closed = True
        self._main_thread.stop()
        self._kept.release()
        assert self._uncaught_errors == []


class TestSparkTaskExecutorGateway(contract.TaskExecutorGatewayContract):
    @pytest.fixture
    def harness(self, spark, tmp_path) -> Iterator[SparkHarness]:
        harness = SparkHarness(spark, tmp_path / "deployed")
        yield harness
        harness.close()
