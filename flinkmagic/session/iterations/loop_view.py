"""A loop for readers: its stream graph, with the edge that feeds back, and how its supersteps went.

The graph is Flink's of such a program, in STREAMING mode, the only one in which Flink has iterations: a head and a tail
that share a slot, around the step. On Spark the step is a job for each superstep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flinkmagic.amounts import duration
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import RuntimeExecutionMode
from flinkmagic.graph.transformations import (
    CoFeedbackTransformation,
    FeedbackTransformation,
    OneInputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)

if TYPE_CHECKING:
    from flinkmagic.graph.stream_graph import StreamGraph
    from flinkmagic.session.iterations.superstep import Superstep


def loop_graph(name: str, step: str, parallelism: int, told: str, *, has_data: bool) -> StreamGraph:
    """Return the stream graph of a loop.

    Parameters
    ----------
    name, step : str
        The loop's name, and its function's.
    parallelism : int
        Of the step.
    told : str
        What is to be said of the loop.
    has_data : bool
        Whether each superstep reads data besides its state.
    """
    environment = StreamExecutionEnvironment(name, RuntimeExecutionMode.STREAMING, parallelism)
    common: dict[str, Any] = {"parallelism": parallelism}
    about: Mapping[str, Any] = {"metadata": {"operator": told, "name": step}, "description": told}
    state = SourceTransformation("state" if has_data else "initial", **common)
    body: Transformation
    if has_data:
        fed = CoFeedbackTransformation(name, **common)
        body = TwoInputTransformation(
            SourceTransformation("data", **common), UnionTransformation([state, fed]), step, **common, **about
        )
        fed.add_feedback_edge(body)
    else:
        head = FeedbackTransformation(state, name, **common)
        body = OneInputTransformation(head, step, **common, **about)
        head.add_feedback_edge(body)
    environment.add_operator(SinkTransformation(body, "result", **common))
    return environment.get_stream_graph()


def supersteps_table(supersteps: Sequence[Superstep]) -> str:
    """Return one line for each superstep: its number, time, tasks, and what `until` measured."""
    lines = []
    for one in supersteps:
        measures = ", ".join(f"{name} {value}" for name, value in one.measures.items())
        lines.append(
            f"  {one.number}: {duration(one.seconds * 1000)}, {one.tasks} tasks" + (f", {measures}" if measures else "")
        )
    return "\n".join(lines)
