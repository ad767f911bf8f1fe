"""Shows a loop: its stream graph, with the feedback edge, and the outcome of its supersteps.

The graph is the one that Flink makes of such a program in STREAMING mode, the only mode with iterations: a head and a
tail that share a slot, around the step. On Spark the step is one job for each superstep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from flinkmagic.amounts import duration
from flinkmagic.display import stream_view
from flinkmagic.display.snapshot import EdgeView, OperatorLine
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
    from flinkmagic.display import GraphView
    from flinkmagic.graph.stream_graph import StreamGraph
    from flinkmagic.session.iterations.superstep import Superstep

_MOST_VALUES = 8
"""At most so many values of a measure are shown; those in the middle are left out."""


def loop_stream_graph(name: str, step: str, parallelism: int, told: str, *, data: int = 0) -> StreamGraph:
    """Return the stream graph of a loop.

    Parameters
    ----------
    told : str
        What the graph says of the loop.
    data : int
        How many DataFrames each superstep reads besides its state. Flink's step has two inputs; several are one there.
    """
    environment = StreamExecutionEnvironment(name, RuntimeExecutionMode.STREAMING, parallelism)
    common: dict[str, Any] = {"parallelism": parallelism}
    about: Mapping[str, Any] = {"metadata": {"operator": told, "name": step}, "description": told}
    state = SourceTransformation("state" if data else "initial", **common)
    body: Transformation
    if data:
        fed = CoFeedbackTransformation(name, **common)
        names = [f"data {number}" for number in range(1, data + 1)] if data > 1 else ["data"]
        sources = [SourceTransformation(each, **common) for each in names]
        first = sources[0] if data == 1 else UnionTransformation(sources)
        body = TwoInputTransformation(first, UnionTransformation([state, fed]), step, **common, **about)
        fed.add_feedback_edge(body)
    else:
        head = FeedbackTransformation(state, name, **common)
        body = OneInputTransformation(head, step, **common, **about)
        head.add_feedback_edge(body)
    environment.add_operator(SinkTransformation(body, "result", **common))
    return environment.get_stream_graph()


def loop_view(graph: StreamGraph, supersteps: Sequence[Superstep]) -> GraphView:
    """Return the view of a loop's stream graph, with the feedback edge and the outcome of the supersteps."""
    view = stream_view(graph)
    head, tail = (
        next(node.id for node in view.nodes if node.name.startswith(name))
        for name in ("IterationSource", "IterationSink")
    )
    [step] = [edge.source for edge in view.edges if edge.target == tail]
    told = tuple(OperatorLine(operator=line) for line in convergence(supersteps))
    facts = tuple((f"superstep {one.number}", _told(one)) for one in supersteps)
    nodes = tuple(
        replace(node, operators=(*told, *node.operators), facts=(*node.facts, *facts)) if node.id == step else node
        for node in view.nodes
    )
    return replace(view, nodes=nodes, edges=(*view.edges, EdgeView(tail, head, "FEEDBACK")))


def convergence(supersteps: Sequence[Superstep]) -> list[str]:
    """Return a line for each measure that is a number, over the supersteps: ``moved 6.9 → 0.88 → … → 0.43``."""
    names = dict.fromkeys(name for one in supersteps for name, value in one.measures.items() if _is_number(value))
    lines = []
    for name in names:
        values = [f"{value:.3g}" for one in supersteps if _is_number(value := one.measures.get(name))]
        if len(values) > _MOST_VALUES:
            values = [*values[: _MOST_VALUES // 2], "…", *values[-_MOST_VALUES // 2 :]]
        lines.append(f"{name} {' → '.join(values)}")
    return lines


def last_measures(supersteps: Sequence[Superstep]) -> list[str]:
    """Return the measures of the last superstep that are numbers: ``moved 0.43``."""
    last = supersteps[-1].measures if supersteps else {}
    return [f"{name} {value:.3g}" for name, value in last.items() if _is_number(value)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def supersteps_table(supersteps: Sequence[Superstep]) -> str:
    """Return one line for each superstep: its number, time, tasks, and what `until` measured."""
    return "\n".join(f"  {one.number}: {_told(one)}" for one in supersteps)


def _told(one: Superstep) -> str:
    measures = ", ".join(f"{name} {value}" for name, value in one.measures.items())
    return f"{duration(one.seconds * 1000)}, {one.tasks} tasks" + (f", {measures}" if measures else "")
