"""A process that runs a job of a store, or takes it up; its executors are simulated, its death need not be.

usage: takeover_process.py FOLDER PACE_SECONDS [STOP_AFTER]

Prints a line of JSON for each task that starts to run or is finished, and for the job's end. After so many
finished tasks it keeps the job, and goes on when a line comes on standard input.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flinkmagic.graph.execution_graph import ExecutionGraph, build_execution_graph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.topology import make_environment
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.dispatcher import Dispatcher
from flinkmagic.scheduling.job_listener import JobListener
from flinkmagic.scheduling.job_manager_runner import OnCompletion
from flinkmagic.scheduling.job_master import HeartbeatOptions, JobMaster
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.recovery.high_availability import FileSystemHaServices
from flinkmagic.scheduling.recovery.job_graph_store import StoredJob
from flinkmagic.scheduling.recovery.job_journal import JobJournal
from flinkmagic.scheduling.recovery.recovered_job import RecoveredJob
from flinkmagic.simulation.remote_shuffle import RemoteShuffleService
from flinkmagic.simulation.simulation import SimulationOptions
from flinkmagic.simulation.task_times import SampledTaskTimes
from flinkmagic.simulation.virtual_cluster import VirtualCluster

JOB_ID = "0123456789abcdef0123456789abcdef"


def the_job() -> JobGraph:
    """Three stages of four, three and two tasks, with blocking results between them."""

    def operator(number: int, kind: str, inputs: list[int], parallelism: int) -> dict[str, Any]:
        return {"id": number, "kind": kind, "name": f"Stage{number}", "inputs": inputs, "parallelism": parallelism}

    def hashed(number: int, source: int) -> dict[str, Any]:
        return {"id": number, "kind": "partition", "name": "hash", "inputs": [source], "partitioner": "hash"}

    stages = [operator(1, "source", [], 4), hashed(2, 1), operator(3, "one_input", [2], 3), hashed(4, 3)]
    stages.append(operator(5, "sink", [4], 2))
    document = {"name": "three-stages", "runtime_mode": "BATCH", "transformations": stages}
    return create_job_graph(make_environment(document).get_stream_graph(), JOB_ID)


class Printer:
    """Tells the test what happens (a `JobListener`)."""

    def __init__(self, graph: ExecutionGraph, stop_after: int) -> None:
        self._graph = graph
        self._left = stop_after

    def on_job_status_changed(self, old: JobStatus, new: JobStatus, at_ms: float, cause: BaseException | None) -> None:
        say(event="status", status=new.value)

    def on_execution_state_changed(
        self, vertices: Sequence[int], state: ExecutionState, at_ms: float, error: BaseException | None
    ) -> None:
        if state in (ExecutionState.RUNNING, ExecutionState.FINISHED):
            for vertex in vertices:
                say(event=state.name.lower(), task=self._graph.execution_vertex(vertex).task_name)
                self._left -= state is ExecutionState.FINISHED
                if self._left == 0:
                    sys.stdin.readline()


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def main(folder: Path, pace_s: float, stop_after: int = -1) -> None:
    times: list[SampledTaskTimes] = []

    class Times:
        """Those of the job, once it is known."""

        def __getattr__(self, name: str) -> Any:
            return getattr(times[0], name)

    options = SimulationOptions()
    cluster = VirtualCluster(
        Times(), seed=0, latency_ms=1.0, evenly_spread=False, start_up_ms=options.slot_timeout_ms,
        heartbeat_interval_ms=1_000.0, heartbeat_timeout_ms=5_000.0, shuffle_folder=folder / "shuffle",
    )  # fmt: skip

    class Submission:
        """The job, with its master on the cluster (a `JobMasterServiceFactory`)."""

        execution_graph = build_execution_graph(the_job())
        main_thread, event_log = cluster.main_thread, cluster.event_log

        def create_job_master_service(
            self,
            former: StoredJob | None,
            journal: JobJournal | None,
            listeners: Sequence[JobListener],
            on_over: OnCompletion,
        ) -> JobMaster:
            times.append(SampledTaskTimes(self.execution_graph, seed=0, default_ms=1_000.0))
            master = cluster.add_job_master(
                self.execution_graph,
                lambda graph, provider, listeners, log: DefaultScheduler(
                    graph, main_thread=cluster.main_thread, clock=cluster.clock, slot_provider=provider,
                    listeners=listeners, event_log=log,
                ),
                slot_timeout_ms=300_000.0, heartbeat=HeartbeatOptions(),
                listeners=(*listeners, Printer(self.execution_graph, stop_after)), on_over=on_over,
            )  # fmt: skip
            if former is not None:
                master.recovered = RecoveredJob(
                    list(former.finished.values()), RemoteShuffleService(cluster.shuffle).holder_of
                )
            say(event="leader")
            return master

    cluster.add_executor("tm-1", 3)
    result = Dispatcher().submit_job(Submission(), FileSystemHaServices(folder / "jobs"))
    if result.done() and result.exception() is not None:
        say(event="refused", error=type(result.exception()).__name__)
        return
    while not result.done():
        time.sleep(pace_s)
        cluster.main_thread.run_next()
    say(event="over", status=result.result().value)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), *map(int, sys.argv[3:]))
