"""Random programs: small, of all kinds of exchanges, groups and modes."""

from __future__ import annotations

import random
from typing import Any

from flinkmagic.errors.graph import GraphRefusedError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.topology import make_environment

_SHUFFLE_MODES = (None, "ALL_EXCHANGES_PIPELINED", "ALL_EXCHANGES_HYBRID_FULL", "ALL_EXCHANGES_HYBRID_SELECTIVE")
_PARTITIONERS = ("hash", "rebalance", "rescale", "broadcast", "forward")
_EXCHANGE_MODES = ("UNDEFINED", "PIPELINED", "BATCH")


def random_job(source: random.Random, job_id: str) -> JobGraph:
    """Draw programs until one is not refused."""
    while True:
        environment = make_environment(random_topology(source, f"job-{job_id[-6:]}"))
        try:
            job_graph = create_job_graph(environment.get_stream_graph(), job_id)
            ExecutionGraph(job_graph)
        except GraphRefusedError:
            continue
        return job_graph


def random_topology(source: random.Random, name: str) -> dict[str, Any]:
    """Draw a program: one to three sources, two to seven operators, each stream ended by a sink."""
    is_batch = source.random() < 0.75
    shuffle_mode = source.choices(_SHUFFLE_MODES, weights=(6, 1, 2, 1))[0] if is_batch else None
    drawing = _Drawing(source, is_batch, hybrid=bool(shuffle_mode and "HYBRID" in shuffle_mode))
    for _ in range(source.randint(1, 3)):
        drawing.add("source", [])
    for _ in range(source.randint(2, 7)):
        drawing.add_operator()
    drawing.add_sinks()
    return {
        "name": name,
        "runtime_mode": "BATCH" if is_batch else "STREAMING",
        "default_parallelism": 2,
        "chaining": source.random() < 0.8,
        "batch_shuffle_mode": shuffle_mode,
        "transformations": drawing.transformations,
    }


class _Drawing:
    def __init__(self, source: random.Random, is_batch: bool, hybrid: bool) -> None:
        self._random = source
        self._is_batch = is_batch
        self._has_groups = not hybrid and source.random() < 0.25
        self._is_co_located = not is_batch and source.random() < 0.5
        self._open: list[int] = []
        self._parallelism: dict[int, int] = {}
        self.transformations: list[dict[str, Any]] = []

    def add(self, kind: str, inputs: list[int], **more: Any) -> int:
        number = len(self.transformations) + 1
        entry: dict[str, Any] = {"id": number, "kind": kind, "name": f"{kind.title()}{number}", "inputs": inputs}
        entry |= more
        parallelism = self._parallelism[inputs[0]] if inputs else 0
        if kind in ("source", "one_input", "two_input", "sink"):
            if kind == "source" or self._random.random() < 0.5:
                parallelism = self._random.randint(1, 5)
            entry["parallelism"] = parallelism
            if self._has_groups and self._random.random() < 0.3:
                entry["slot_sharing_group"] = self._random.choice(("red", "green"))
            if self._is_co_located and self._random.random() < 0.3:
                entry["co_location_group"] = "pinned"
        self._parallelism[number] = parallelism
        self.transformations.append(entry)
        for used in inputs:
            if used in self._open:
                self._open.remove(used)
        self._open.append(number)
        return number

    def add_operator(self) -> None:
        physical = [t["id"] for t in self.transformations if t["kind"] not in ("partition", "union", "sink")]
        first = self._maybe_partitioned(self._random.choice(physical))
        choice = self._random.random()
        if choice < 0.55:
            self.add("one_input", [first])
        else:
            second = self._maybe_partitioned(self._random.choice(physical))
            if choice < 0.9:
                self.add("two_input", [first, second])
            else:
                self.add("one_input", [self.add("union", [first, second])])

    def add_sinks(self) -> None:
        for number in list(self._open):
            self.add("sink", [self._maybe_partitioned(number)])

    def _maybe_partitioned(self, number: int) -> int:
        if self._random.random() < 0.3:
            return number
        exchange = self._random.choice(_EXCHANGE_MODES) if self._is_batch else "UNDEFINED"
        partitioner = self._random.choice(_PARTITIONERS)
        return self.add("partition", [number], partitioner=partitioner, exchange_mode=exchange)
