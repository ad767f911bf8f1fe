"""Short hands for building programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import BatchShuffleMode, RuntimeExecutionMode
from flinkmagic.graph.job_graph import JobGraph, JobVertex
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.graph.transformations import Transformation

StreamGraphOf = Callable[..., StreamGraph]
JobGraphOf = Callable[..., JobGraph]


def _stream_graph(
    *operators: Transformation,
    parallelism: int = 2,
    batch: bool = False,
    chaining: bool = True,
    shuffle_mode: str | None = None,
    max_parallelism: int | None = None,
) -> StreamGraph:
    environment = StreamExecutionEnvironment(
        "job",
        RuntimeExecutionMode.BATCH if batch else RuntimeExecutionMode.STREAMING,
        parallelism,
        chaining=chaining,
        max_parallelism=max_parallelism,
        batch_shuffle_mode=BatchShuffleMode(shuffle_mode) if shuffle_mode else None,
    )
    for operator in operators:
        environment.add_operator(operator)
    return environment.get_stream_graph()


@pytest.fixture
def stream_graph() -> StreamGraphOf:
    return _stream_graph


@pytest.fixture
def job_graph() -> JobGraphOf:
    return lambda *operators, **settings: create_job_graph(_stream_graph(*operators, **settings))


@pytest.fixture
def vertex() -> Callable[[JobGraph, str], JobVertex]:
    """The vertex whose name begins so."""

    def find(graph: JobGraph, name: str) -> JobVertex:
        (found,) = [vertex for vertex in graph.vertices.values() if vertex.name.startswith(name)]
        return found

    return find
