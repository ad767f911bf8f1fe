from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from flinkmagic.errors.graph import TopologyError
from flinkmagic.graph.compilation import compile_topology
from flinkmagic.graph.exchange_mode import ChainingStrategy, RuntimeExecutionMode
from flinkmagic.graph.topology import read_topology, schema
from flinkmagic.graph.transformations import SourceTransformation

Edit = Callable[[dict[str, Any]], Any]


def topology() -> dict[str, Any]:
    return {
        "name": "t",
        "transformations": [
            {"id": 1, "kind": "source", "name": "read"},
            {"id": 4, "kind": "partition", "partitioner": "hash", "inputs": [1]},
            {"id": 5, "kind": "one_input", "name": "count", "inputs": [4]},
            {"id": 6, "kind": "sink", "name": "write", "inputs": [5]},
        ],
    }


def test_what_is_left_out_has_a_default() -> None:
    environment = read_topology(json.dumps(topology()))
    assert environment.runtime_mode is RuntimeExecutionMode.STREAMING
    assert environment.config.parallelism == 1
    assert environment.config.chaining
    assert [t.name for t in environment.transformations] == ["count", "write"]
    source = environment.transformations[0].input.input
    assert isinstance(source, SourceTransformation)
    assert source.bounded
    assert source.chaining_strategy is ChainingStrategy.HEAD


def test_every_field_is_taken_over() -> None:
    document = topology()
    document.update(
        runtime_mode="BATCH", default_parallelism=3, max_parallelism=64, chaining=False,
        batch_shuffle_mode="ALL_EXCHANGES_HYBRID_FULL",
    )  # fmt: skip
    document["transformations"][2].update(
        parallelism=2, max_parallelism=9, slot_sharing_group="g", co_location_group="k", chaining_strategy="NEVER",
        uid="u", uid_hash="ab" * 16, managed_memory_weights={"OPERATOR": 1}, description="d", metadata={"line": 7.5},
    )  # fmt: skip
    environment = read_topology(json.dumps(document))
    assert (environment.config.parallelism, environment.config.max_parallelism) == (3, 64)
    assert not environment.config.chaining
    assert environment.config.batch_shuffle_mode.value == "ALL_EXCHANGES_HYBRID_FULL"
    count = environment.transformations[0]
    assert (count.parallelism, count.max_parallelism, count.uid, count.metadata) == (2, 9, "u", {"line": 7.5})
    assert (count.slot_sharing_group, count.co_location_group, count.description) == ("g", "k", "d")
    assert count.chaining_strategy is ChainingStrategy.NEVER


def test_inputs_may_be_listed_after_their_consumers() -> None:
    document = topology()
    document["transformations"].reverse()
    assert [t.name for t in read_topology(json.dumps(document)).transformations] == ["write", "count"]


def test_a_number_is_an_integer_whatever_its_spelling() -> None:
    text = json.dumps(topology()).replace('"name": "count"', '"name": "count", "parallelism": 2.0')
    assert read_topology(text).transformations[0].parallelism == 2


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.pop("name"), "the topology: lacks 'name'"),
        (lambda d: d.update(nam="x"), "the topology: has no field 'nam'"),
        (lambda d: d.update(runtime_mode="AUTO"), 'runtime_mode: must be one of "STREAMING", "BATCH", null'),
        (
            lambda d: d["transformations"][3].update(inputs=[9]),
            "transformations[3].inputs[0]: no transformation has id 9",
        ),
        (
            lambda d: d["transformations"].append({"id": 7, "kind": "one_input", "name": "m", "inputs": [6]}),
            "transformations[4].inputs[0]: 6 is a sink, which has no output",
        ),
        (lambda d: d["transformations"][3].update(inputs=[5, 1]), "transformations[3].inputs: takes 1 entry, not 2"),
        (lambda d: d["transformations"][3].update(inputs=["5"]), "transformations[3].inputs[0]: must be integer"),
        (lambda d: d["transformations"][2].update(id=1), "transformations[2].id: transformations[0] has the id 1, too"),
        (
            lambda d: d["transformations"][1].update(inputs=[5]),
            "transformations[2].inputs[0]: 4 closes a cycle that is no iteration; only feedback_edges may",
        ),
        (
            lambda d: d["transformations"][2].update(parallelism="2"),
            "transformations[2].parallelism: must be integer or null",
        ),
        (lambda d: d["transformations"][2].update(parallelism=2.5), "transformations[2].parallelism: must be integer"),
        (lambda d: d["transformations"][2].update(parallelism=True), "transformations[2].parallelism: must be integer"),
        (lambda d: d["transformations"][1].update(parallelism=2), "transformations[1].parallelism: must be null"),
        (lambda d: d["transformations"][2].update(paralelism=2), "transformations[2]: has no field 'paralelism'"),
        (lambda d: d["transformations"][2].update(kind="map"), 'transformations[2].kind: must be one of "source",'),
        (lambda d: d["transformations"][2].pop("kind"), "transformations[2]: lacks 'kind'"),
        (lambda d: d["transformations"].append(3), "transformations[4]: must be object"),
        (
            lambda d: d["transformations"].append({"id": 7, "kind": "feedback", "inputs": [5], "feedback_edges": [8]}),
            "transformations[4].feedback_edges[0]: no transformation has id 8",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_in_one_line(edit: Edit, message: str) -> None:
    document = topology()
    edit(document)
    with pytest.raises(TopologyError) as refused:
        read_topology(json.dumps(document))
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name": "t",\n "transformations": [}', "line 2, column 22: no JSON: Expecting value"),
        ("[]", "the topology: must be object"),
        ("[" * 100_000, "no topology: it is nested too deep"),
    ],
)
def test_what_is_no_topology_at_all(text: str, message: str) -> None:
    with pytest.raises(TopologyError) as refused:
        read_topology(text)
    assert str(refused.value) == f"{message}. Correct it; flinkmagic/graph/topology.md describes the format."


def test_the_schema_describes_every_field() -> None:
    fields = schema()["$defs"]["fields"]
    assert [name for name, field in fields.items() if name != "kind" and "description" not in field] == []


def test_the_documented_example_compiles() -> None:
    page = files("flinkmagic.graph").joinpath("topology.md").read_text()
    example = page.split("```json\n")[1].split("```")[0]
    graph = compile_topology(example).job_graph
    assert graph is not None
    assert [vertex.name for vertex in graph.vertices_in_topological_order()] == [
        "Source: Lines -> Split", "Count", "Sink: Print",
    ]  # fmt: skip
