"""The environment: a job's defaults and the transformations that were registered with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from flinkmagic.errors.graph import DuplicateTransformationIdError, FeedbackParallelismError
from flinkmagic.graph.exchange_mode import BatchShuffleMode, RuntimeExecutionMode
from flinkmagic.graph.execution_config import ExecutionConfig
from flinkmagic.graph.stream_graph_generator import StreamGraphGenerator
from flinkmagic.graph.transformations import (
    UPPER_BOUND_MAX_PARALLELISM,
    CoFeedbackTransformation,
    FeedbackTransformation,
    SelectTransformation,
    SplitTransformation,
    Transformation,
    check_parallelism,
)

if TYPE_CHECKING:
    from flinkmagic.graph.stream_graph import StreamGraph

_PARALLELISM_UNKNOWN = -2
"""``ExecutionConfig.PARALLELISM_UNKNOWN``: leaves Flink's own default, 1, in place."""


class StreamExecutionEnvironment:
    """Collects transformations and makes a StreamGraph of them. Mirrors ``StreamExecutionEnvironment``.

    Only operators are registered, with :meth:`add_operator`; sources and virtual transformations are in the graph if an
    operator reaches them.

    Parameters
    ----------
    parallelism : int
        Default of the operators; -1 stays undecided up to the execution graph, where it becomes 1; -2 is 1.
    max_parallelism : int, optional
        Default of the operators, 1 to 32768.
    chaining : bool
        Whether operators may share tasks.
    batch_shuffle_mode : BatchShuffleMode, optional
        The mode in BATCH of an exchange of undefined mode; blocking if not given.
    upper_bound_max_parallelism : int
        The greatest parallelism allowed. Flink's bound is that of its key groups; a Spark stage has none, so the
        planner of Spark stages sets a greater one.
    """

    def __init__(
        self,
        name: str,
        runtime_mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING,
        parallelism: int = 1,
        *,
        max_parallelism: int | None = None,
        chaining: bool = True,
        batch_shuffle_mode: BatchShuffleMode | None = None,
        upper_bound_max_parallelism: int = UPPER_BOUND_MAX_PARALLELISM,
    ) -> None:
        if parallelism == _PARALLELISM_UNKNOWN:
            parallelism = 1
        check_parallelism(name, parallelism, max_parallelism)
        self.name = name
        self.runtime_mode = RuntimeExecutionMode(runtime_mode)
        self.config = ExecutionConfig(
            parallelism,
            max_parallelism,
            chaining,
            batch_shuffle_mode or BatchShuffleMode.ALL_EXCHANGES_BLOCKING,
            upper_bound_max_parallelism,
        )
        self.transformations: list[Transformation] = []
        self._ids: dict[int, Transformation] = {}
        self._next_id = 1

    def add_operator(self, transformation: Transformation) -> None:
        """Register an operator; assign ids to it and to all that it reaches."""
        self.adopt(transformation)
        self.transformations.append(transformation)

    def adopt(self, *transformations: Transformation) -> None:
        """Assign ids, inputs first, to the transformations and to all that they reach."""
        found = reachable(transformations, self._ids)
        for transformation in found:
            if transformation.id is not None:
                self._register(transformation.id, transformation)
        for transformation in found:
            if transformation.id is None:
                while self._next_id in self._ids:
                    self._next_id += 1
                transformation.id = self._next_id
                self._register(transformation.id, transformation)

    def _register(self, id: int, transformation: Transformation) -> None:
        if self._ids.setdefault(id, transformation) is not transformation:
            raise DuplicateTransformationIdError(id)

    @property
    def has_split(self) -> bool:
        """Whether streams are split and selected: such a program is compiled as in Flink 1.11, the last to allow it."""
        return any(isinstance(t, (SplitTransformation, SelectTransformation)) for t in self._ids.values())

    def parallelism_of(self, transformation: Transformation) -> int:
        """Return the parallelism of Flink's transformation, -1 included; for a virtual one, its first input's."""
        while transformation.parallelism is None:
            if transformation.is_physical or not transformation.inputs:
                return self.config.parallelism
            transformation = transformation.inputs[0]
        return transformation.parallelism

    def check_feedback(self, iteration: FeedbackTransformation | CoFeedbackTransformation) -> None:
        """Refuse feedback edges whose parallelism differs from the iteration's."""
        parallelism = self.parallelism_of(iteration)
        for edge in iteration.feedback_edges:
            if self.parallelism_of(edge) != parallelism:
                raise FeedbackParallelismError(iteration.name, parallelism, edge.name, self.parallelism_of(edge))

    def get_stream_graph(self) -> StreamGraph:
        """Compile what is registered into a StreamGraph."""
        return StreamGraphGenerator(self).generate()


def reachable(
    roots: Iterable[Transformation], known: Mapping[int, Transformation] | None = None
) -> list[Transformation]:
    """Return the transformations that ``roots`` reach through inputs and feedback edges, inputs first.

    Those in ``known`` (by id) are left out, with all that only they reach.
    """
    found: list[Transformation] = []
    known = known or {}
    seen: set[int] = set()
    stack: list[tuple[Transformation, bool]] = [(root, False) for root in reversed(list(roots))]
    while stack:
        transformation, inputs_done = stack.pop()
        if inputs_done:
            found.append(transformation)
            stack.extend((edge, False) for edge in reversed(getattr(transformation, "feedback_edges", ())))
            continue
        if id(transformation) in seen or (
            transformation.id is not None and known.get(transformation.id) is transformation
        ):
            continue
        seen.add(id(transformation))
        stack.append((transformation, True))
        stack.extend((other, False) for other in reversed(transformation.inputs))
    return found
