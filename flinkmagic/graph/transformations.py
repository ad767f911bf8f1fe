"""Transformations: what a program consists of before any graph is built.

Mirrors ``org.apache.flink.api.dag.Transformation`` and its subclasses. Departures: a transformation is made without an
environment, so the environment decides ``parallelism=None`` (its default) and ``id=None`` (the next free one) when it
meets the transformation; ``description``, ``metadata`` and ``operator_factory`` go unchanged through all graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from flinkmagic.errors.graph import (
    EmptyOutputTagError,
    EmptyUnionError,
    OperatorMaxParallelismError,
    OperatorParallelismError,
    UnionTypeMismatchError,
)
from flinkmagic.graph.exchange_mode import ChainingStrategy, StreamExchangeMode
from flinkmagic.graph.partitioner import PartitionerKind, StreamPartitioner

PARALLELISM_DEFAULT = -1
"""``ExecutionConfig.PARALLELISM_DEFAULT``: use the job's default."""
UPPER_BOUND_MAX_PARALLELISM = 1 << 15
"""``Transformation.UPPER_BOUND_MAX_PARALLELISM``."""
STRING = "STRING"
"""The default type of streams; types are names here."""


def check_parallelism(name: str, parallelism: int | None, max_parallelism: int | None) -> None:
    """Refuse what is no parallelism of an operator, or of a job; None is not decided yet."""
    if parallelism is not None and parallelism < 1 and parallelism != PARALLELISM_DEFAULT:
        raise OperatorParallelismError(name, parallelism)
    if max_parallelism is not None and not 0 < max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        raise OperatorMaxParallelismError(name, max_parallelism, UPPER_BOUND_MAX_PARALLELISM)


class Transformation:
    """Makes a stream from none, one or several others.

    Parameters
    ----------
    name : str
        Short name; parts of vertex names are made from it.
    id : int, optional
        Unique within an environment; ``None`` takes the next free one when the environment meets it.
    parallelism : int, optional
        Number of subtasks. ``None`` is the environment's default, -1 the job's (``PARALLELISM_DEFAULT``).
    max_parallelism : int, optional
        Upper bound of rescaling, 1 to 32768; ``None`` is the environment's, if it has one.
    slot_sharing_group, co_location_group, chaining_strategy, uid
        As in Flink.
    description : str, optional
        A label for readers (Flink's ``setDescription``).
    metadata : Mapping, optional
        The caller's JSON-able facts, such as a cell and a line.
    operator_factory : object, optional
        Opaque handle by which a gateway runs the operator.
    """

    __slots__ = (
        "chaining_strategy",
        "co_location_group",
        "description",
        "id",
        "inputs",
        "max_parallelism",
        "metadata",
        "name",
        "operator_factory",
        "output_type",
        "parallelism",
        "slot_sharing_group",
        "uid",
    )

    default_chaining_strategy: ClassVar[ChainingStrategy | None] = None
    is_physical: ClassVar[bool] = False
    """Whether it becomes a node of the StreamGraph, not a property of edges."""

    def __init__(
        self,
        name: str,
        inputs: Iterable[Transformation] = (),
        *,
        id: int | None = None,
        parallelism: int | None = None,
        max_parallelism: int | None = None,
        slot_sharing_group: str | None = None,
        co_location_group: str | None = None,
        chaining_strategy: ChainingStrategy | None = None,
        uid: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        operator_factory: object | None = None,
        output_type: str = STRING,
    ) -> None:
        check_parallelism(name, parallelism, max_parallelism)
        self.name = name
        self.inputs: tuple[Transformation, ...] = tuple(inputs)
        self.id = id
        self.parallelism = parallelism
        self.max_parallelism = max_parallelism
        self.slot_sharing_group = slot_sharing_group
        self.co_location_group = co_location_group
        self.chaining_strategy = chaining_strategy or self.default_chaining_strategy
        self.uid = uid
        self.description = description
        self.metadata = metadata
        self.operator_factory = operator_factory
        self.output_type = output_type

    @property
    def input(self) -> Transformation:
        """The first input."""
        return self.inputs[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id}, name={self.name!r})"


class SourceTransformation(Transformation):
    """Reads from outside. Mirrors ``LegacySourceTransformation``: a source is a task of its own, HEAD of its chain.

    Parameters
    ----------
    bounded : bool
        Whether it ends; an unbounded one is refused in BATCH.
    """

    __slots__ = ("bounded",)
    default_chaining_strategy = ChainingStrategy.HEAD
    is_physical = True

    def __init__(self, name: str, *, bounded: bool = True, **common: Any) -> None:
        super().__init__(name, **common)
        self.bounded = bounded


class OneInputTransformation(Transformation):
    """An operator on one stream. Mirrors ``OneInputTransformation``."""

    __slots__ = ()
    default_chaining_strategy = ChainingStrategy.ALWAYS
    is_physical = True

    def __init__(self, input: Transformation, name: str, **common: Any) -> None:
        super().__init__(name, (input,), **common)


class TwoInputTransformation(Transformation):
    """An operator on two streams, HEAD by default. Mirrors ``TwoInputTransformation``."""

    __slots__ = ()
    default_chaining_strategy = ChainingStrategy.HEAD
    is_physical = True

    def __init__(self, input1: Transformation, input2: Transformation, name: str, **common: Any) -> None:
        super().__init__(name, (input1, input2), **common)


class MultipleInputTransformation(Transformation):
    """An operator on any number of streams, HEAD by default. Mirrors ``MultipleInputTransformation``."""

    __slots__ = ()
    default_chaining_strategy = ChainingStrategy.HEAD
    is_physical = True

    def __init__(self, inputs: Sequence[Transformation], name: str, **common: Any) -> None:
        super().__init__(name, inputs, **common)


class SinkTransformation(Transformation):
    """Writes to the outside. Mirrors ``LegacySinkTransformation``."""

    __slots__ = ()
    default_chaining_strategy = ChainingStrategy.ALWAYS
    is_physical = True

    def __init__(self, input: Transformation, name: str, **common: Any) -> None:
        super().__init__(name, (input,), **common)


class CacheTransformation(Transformation):
    """A result that outlives the job (``BLOCKING_PERSISTENT``). Mirrors ``CacheTransformation``.

    Parameters
    ----------
    dataset_id : str, optional
        Name of the persistent result; ``None`` is ``cache-<id>``.
    cached : bool
        Whether an earlier job made it already: then it is read, and its input is not compiled.
    read_by_job : bool
        Whether this job's own consumers read the persistent result. In Flink they read another result of the same
        operator, and a task that does nothing consumes the persistent one; if a kept result can be read any number of
        times, neither the second result nor that task is needed.
    """

    __slots__ = ("cached", "dataset_id", "read_by_job")
    is_physical = True

    def __init__(
        self,
        input: Transformation,
        name: str = "Cache",
        *,
        dataset_id: str | None = None,
        cached: bool = False,
        read_by_job: bool = False,
        **common: Any,
    ) -> None:
        super().__init__(name, (input,), output_type=input.output_type, **common)
        self.dataset_id = dataset_id
        self.cached = cached
        self.read_by_job = read_by_job


class UnionTransformation(Transformation):
    """Several streams of one type as one. Mirrors ``UnionTransformation``."""

    __slots__ = ()

    def __init__(self, inputs: Sequence[Transformation], name: str = "Union", **common: Any) -> None:
        if not inputs:
            raise EmptyUnionError(name)
        for position, other in enumerate(inputs):
            if other.output_type != inputs[0].output_type:
                raise UnionTypeMismatchError(name, position, inputs[0].output_type, other.output_type)
        super().__init__(name, inputs, output_type=inputs[0].output_type, **common)


class _OfOneStream(Transformation):
    """Base of the virtual transformations that say something about one stream."""

    __slots__ = ()

    def __init__(self, input: Transformation, name: str, **common: Any) -> None:
        common.setdefault("output_type", input.output_type)
        super().__init__(name, (input,), **common)


class PartitionTransformation(_OfOneStream):
    """Says how the records of a stream are spread over the consumer. Mirrors ``PartitionTransformation``.

    Parameters
    ----------
    partitioner : StreamPartitioner or PartitionerKind
        How; a kind means a partitioner of that kind without a key.
    exchange_mode : StreamExchangeMode
        Whether consumer and producer may run simultaneously.
    """

    __slots__ = ("exchange_mode", "partitioner")

    def __init__(
        self,
        input: Transformation,
        partitioner: StreamPartitioner | PartitionerKind,
        exchange_mode: StreamExchangeMode = StreamExchangeMode.UNDEFINED,
        *,
        name: str | None = None,
        **common: Any,
    ) -> None:
        if isinstance(partitioner, PartitionerKind):
            partitioner = StreamPartitioner(partitioner)
        super().__init__(input, name or partitioner.kind.value, **common)
        self.partitioner = partitioner
        self.exchange_mode = exchange_mode


class OutputTag:
    """Names a side output. Mirrors ``OutputTag``; types are names."""

    __slots__ = ("id", "type")

    def __init__(self, id: str, type: str = STRING) -> None:
        if not id:
            raise EmptyOutputTagError
        self.id = id
        self.type = type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and (self.id, self.type) == (other.id, other.type)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"OutputTag({self.id!r}, {self.type})"


class SideOutputTransformation(_OfOneStream):
    """The records that an operator sent to a side output. Mirrors ``SideOutputTransformation``."""

    __slots__ = ("tag",)

    def __init__(self, input: Transformation, tag: OutputTag | str, *, name: str | None = None, **common: Any) -> None:
        if isinstance(tag, str):
            tag = OutputTag(tag)
        super().__init__(input, name or f"side-{tag.id}", output_type=tag.type, **common)
        self.tag = tag


class SplitTransformation(_OfOneStream):
    """Gives the records of a stream names, for :class:`SelectTransformation`. Flink has it up to 1.11."""

    __slots__ = ()

    def __init__(self, input: Transformation, name: str = "Split", **common: Any) -> None:
        super().__init__(input, name, **common)


class SelectTransformation(_OfOneStream):
    """The records of a split stream with certain names. Flink has it up to 1.11."""

    __slots__ = ("selected_names",)

    def __init__(
        self, input: Transformation, selected_names: Sequence[str], name: str = "Select", **common: Any
    ) -> None:
        super().__init__(input, name, **common)
        self.selected_names = tuple(selected_names)


class FeedbackTransformation(_OfOneStream):
    """A stream with the streams that are fed back into it: an iteration. Mirrors ``FeedbackTransformation``."""

    __slots__ = ("feedback_edges",)

    def __init__(self, input: Transformation, name: str = "Feedback", **common: Any) -> None:
        super().__init__(input, name, **common)
        self.feedback_edges: list[Transformation] = []

    def add_feedback_edge(self, edge: Transformation) -> None:
        """Feed ``edge`` back. Its parallelism must be this one's: the environment compares them."""
        self.feedback_edges.append(edge)


class CoFeedbackTransformation(Transformation):
    """The feedback side of a two-input operator's iteration. Mirrors ``CoFeedbackTransformation``."""

    __slots__ = ("feedback_edges",)

    def __init__(self, name: str = "CoFeedback", **common: Any) -> None:
        super().__init__(name, **common)
        self.feedback_edges: list[Transformation] = []

    def add_feedback_edge(self, edge: Transformation) -> None:
        """Feed ``edge`` back. Its parallelism must be this one's: the environment compares them."""
        self.feedback_edges.append(edge)


def operator_on(inputs: Sequence[Transformation], name: str, **common: Any) -> Transformation:
    """Make an operator of the class that fits the number of its inputs; a source if there are none."""
    if not inputs:
        return SourceTransformation(name, **common)
    if len(inputs) == 1:
        return OneInputTransformation(inputs[0], name, **common)
    if len(inputs) == 2:
        return TwoInputTransformation(inputs[0], inputs[1], name, **common)
    return MultipleInputTransformation(inputs, name, **common)
