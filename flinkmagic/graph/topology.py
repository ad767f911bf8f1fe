"""Programs as JSON: see ``topology.schema.json`` beside this module for the format.

A topology is checked in two steps, to distinguish a mistake in the file from a program that Flink refuses: the schema
and the ids are checked here (:class:`~flinkmagic.errors.graph.TopologyError`, with the place), the graph rules in the
graphs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from flinkmagic.amounts import count
from flinkmagic.errors.graph import TopologyError
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import (
    BatchShuffleMode,
    ChainingStrategy,
    RuntimeExecutionMode,
    StreamExchangeMode,
)
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import (
    STRING,
    CacheTransformation,
    CoFeedbackTransformation,
    FeedbackTransformation,
    MultipleInputTransformation,
    OneInputTransformation,
    OutputTag,
    PartitionTransformation,
    SelectTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    SplitTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)

Document = Mapping[str, Any]
_Make = Callable[[Document, Sequence[Transformation], dict[str, Any]], Transformation]

_COMMON = (
    "parallelism", "max_parallelism", "slot_sharing_group", "co_location_group", "uid", "description",
    "metadata", "name",
)  # fmt: skip

_MAKERS: dict[str, _Make] = {
    "source": lambda t, inputs, common: SourceTransformation(bounded=t.get("bounded") is not False, **common),
    "one_input": lambda t, inputs, common: OneInputTransformation(inputs[0], **common),
    "two_input": lambda t, inputs, common: TwoInputTransformation(inputs[0], inputs[1], **common),
    "multiple_input": lambda t, inputs, common: MultipleInputTransformation(inputs, **common),
    "sink": lambda t, inputs, common: SinkTransformation(inputs[0], **common),
    "cache": lambda t, inputs, common: CacheTransformation(
        inputs[0], dataset_id=t.get("dataset_id"), cached=bool(t.get("cached")), **common
    ),
    "union": lambda t, inputs, common: UnionTransformation(inputs, **common),
    "partition": lambda t, inputs, common: PartitionTransformation(
        inputs[0],
        PartitionerKind(t["partitioner"]),
        StreamExchangeMode(t.get("exchange_mode") or "UNDEFINED"),
        **common,
    ),
    "side_output": lambda t, inputs, common: SideOutputTransformation(
        inputs[0], OutputTag(t["tag"], t.get("tag_type") or STRING), **common
    ),
    "split": lambda t, inputs, common: SplitTransformation(inputs[0], **common),
    "select": lambda t, inputs, common: SelectTransformation(inputs[0], t["selected_names"], **common),
    "feedback": lambda t, inputs, common: FeedbackTransformation(inputs[0], **common),
    "co_feedback": lambda t, inputs, common: CoFeedbackTransformation(**common),
}
_REGISTERED = (OneInputTransformation, TwoInputTransformation, MultipleInputTransformation, SinkTransformation)


def read_topology(text: str) -> StreamExecutionEnvironment:
    """Make an environment from a topology's text.

    Raises
    ------
    TopologyError
        If it is no JSON or no topology; the message begins with the place.
    StreamGraphRefusedError
        If Flink refuses to make one of the transformations.
    """
    try:
        document = json.loads(text, parse_float=_number)
    except json.JSONDecodeError as error:
        raise TopologyError(f"line {error.lineno}, column {error.colno}", f"no JSON: {error.msg}") from None
    except RecursionError:
        raise TopologyError("", "no topology: it is nested too deep") from None
    return make_environment(document)


def make_environment(document: Any) -> StreamExecutionEnvironment:
    """Make an environment from a parsed topology; raise as :func:`read_topology` does."""
    validate(document)
    listed: Sequence[Document] = document["transformations"]
    shuffle_mode = document.get("batch_shuffle_mode")
    parallelism = document.get("default_parallelism")
    order = _inputs_first(listed)
    environment = StreamExecutionEnvironment(
        document["name"],
        RuntimeExecutionMode(document.get("runtime_mode") or "STREAMING"),
        1 if parallelism is None else parallelism,
        max_parallelism=document.get("max_parallelism"),
        chaining=document.get("chaining") is not False,
        batch_shuffle_mode=BatchShuffleMode(shuffle_mode) if shuffle_mode else None,
    )
    made: dict[int, Transformation] = {}
    for index in order:
        made[listed[index]["id"]] = _make(listed[index], made)
    _close_iterations(environment, listed, made)
    environment.adopt(*made.values())
    for entry in listed:
        transformation = made[entry["id"]]
        if isinstance(transformation, _REGISTERED) or (
            isinstance(transformation, CacheTransformation) and not transformation.cached
        ):
            environment.add_operator(transformation)
    return environment


def _make(entry: Document, made: Mapping[int, Transformation]) -> Transformation:
    common = {name: entry[name] for name in _COMMON if entry.get(name) is not None}
    common["id"] = entry["id"]
    if entry.get("chaining_strategy"):
        common["chaining_strategy"] = ChainingStrategy(entry["chaining_strategy"])
    return _MAKERS[entry["kind"]](entry, [made[id] for id in entry.get("inputs", ())], common)


def _close_iterations(
    environment: StreamExecutionEnvironment, listed: Iterable[Document], made: Mapping[int, Transformation]
) -> None:
    for entry in listed:
        iteration = made[entry["id"]]
        if isinstance(iteration, (FeedbackTransformation, CoFeedbackTransformation)):
            for id in entry["feedback_edges"]:
                iteration.add_feedback_edge(made[id])
            environment.check_feedback(iteration)


def _index_by_id(listed: Sequence[Document]) -> dict[int, int]:
    """Return the index of each id's entry; refuse duplicate ids, and uses of ids that nothing can read."""
    index_of: dict[int, int] = {}
    for index, entry in enumerate(listed):
        if index_of.setdefault(entry["id"], index) != index:
            other = f"transformations[{index_of[entry['id']]}]"
            raise TopologyError(f"transformations[{index}].id", f"{other} has the id {entry['id']}, too")
    for index, entry in enumerate(listed):
        for field in ("inputs", "feedback_edges"):
            for position, id in enumerate(entry.get(field, ())):
                place = f"transformations[{index}].{field}[{position}]"
                if id not in index_of:
                    raise TopologyError(place, f"no transformation has id {id}")
                if listed[index_of[id]]["kind"] == "sink":
                    raise TopologyError(place, f"{id} is a sink, which has no output")
    return index_of


def _inputs_first(listed: Sequence[Document]) -> list[int]:
    """Order the entries so that inputs come before their consumers; refuse cycles."""
    index_of = _index_by_id(listed)
    order: list[int] = []
    entered: set[int] = set()
    done: set[int] = set()
    for root in range(len(listed)):
        stack = [(root, 0)]
        while stack:
            index, position = stack.pop()
            inputs = listed[index].get("inputs", ())
            if position == 0 and index in done:
                continue
            entered.add(index)
            if position == len(inputs):
                order.append(index)
                done.add(index)
                continue
            stack.append((index, position + 1))
            needed = index_of[inputs[position]]
            if needed in entered and needed not in done:
                raise TopologyError(
                    f"transformations[{index}].inputs[{position}]",
                    f"{inputs[position]} closes a cycle that is no iteration; only feedback_edges may",
                )
            stack.append((needed, 0))
    return order


def _number(text: str) -> int | float:
    """Convert 2.0 to 2: JSON knows one kind of number."""
    number = float(text)
    return int(number) if number.is_integer() else number


# The schema


def schema() -> dict[str, Any]:
    """Return the JSON schema of topologies."""
    loaded: dict[str, Any] = json.loads(files("flinkmagic.graph").joinpath("topology.schema.json").read_text())
    return loaded


@lru_cache(maxsize=1)
def _validator() -> Callable[[Any], object]:
    # fastjsonschema, because jsonschema takes a second or more to import if Jupyter installed its formats.
    import fastjsonschema

    compiled: Callable[[Any], object] = fastjsonschema.compile(schema())
    return compiled


def validate(document: Any) -> None:
    """Check a document against the schema; raise a TopologyError for the first mistake."""
    from fastjsonschema import JsonSchemaValueException

    try:
        _validator()(document)
    except JsonSchemaValueException as error:
        raise TopologyError(_place(error.path[1:]), _problem(error)) from None


def _place(path: Iterable[str]) -> str:
    place = ""
    for part in path:
        place += f"[{part}]" if part.isdigit() else f".{part}" if place else part
    return place or "the topology"


def _problem(error: Any) -> str:
    expected = error.rule_definition
    if error.rule in ("minItems", "maxItems"):
        return f"takes {count(expected, 'entry', 'entries')}, not {len(error.value)}"
    if error.rule == "required":
        return f"lacks {', '.join(repr(name) for name in expected if name not in error.value)}"
    if error.rule == "additionalProperties":
        unknown = error.value.keys() - error.definition["properties"].keys()
        return f"has no field {', '.join(map(repr, sorted(unknown)))}"
    if error.rule == "enum":
        return f"must be one of {', '.join(json.dumps(value) for value in expected)}"
    return str(error.message).removeprefix(f"{error.name} ")
