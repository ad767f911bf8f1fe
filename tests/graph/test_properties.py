"""What holds of every program: random ones, drawn as topologies."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flinkmagic.graph.compilation import Compilation, compile_topology
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.json_report import report_graphs
from flinkmagic.graph.pipelined_region import logical_pipelined_regions
from flinkmagic.graph.slot_sharing import local_input_preferred
from tests.graph.consumer_groups import consumed_groups, consumer_groups

PARTITIONERS = ["hash", "rescale", "rescale", "forward", "rebalance", "broadcast", "shuffle", "global", "custom"]
MODES = ["UNDEFINED", "UNDEFINED", "PIPELINED", "BATCH"]
KINDS = ["one_input"] * 3 + ["partition"] * 4 + ["two_input", "sink", "union", "side_output"]
SHUFFLES = ["ALL_EXCHANGES_PIPELINED", "ALL_EXCHANGES_BLOCKING"]


@st.composite
def topologies(draw: st.DrawFn) -> dict[str, Any]:
    """A topology without iterations: sources, then operators and virtual transformations on what is there."""
    batch = draw(st.booleans())
    parallelisms = st.sampled_from([None, None, None, 1, 2, 3, 4, 6])
    with_inputs = draw(st.integers(0, 4)) == 0
    strategies = [None, None, None, None, "ALWAYS", "HEAD", "NEVER", *(["HEAD_WITH_INPUTS"] * 6 if with_inputs else [])]
    listed: list[dict[str, Any]] = []
    for id in range(1, 1 + draw(st.integers(1, 3))):
        listed.append({"id": id, "kind": "source", "name": f"s{id}", "parallelism": draw(parallelisms)})
    for id in range(len(listed) + 1, len(listed) + 1 + draw(st.integers(1, 14))):
        stream = st.sampled_from([t["id"] for t in listed if t["kind"] != "sink"][-4:])
        kind = draw(st.sampled_from(KINDS))
        takes = 2 if kind in ("two_input", "union") else 1
        entry = {"id": id, "kind": kind, "name": f"t{id}", "inputs": [draw(stream) for _ in range(takes)]}
        if kind == "partition":
            entry.update(partitioner=draw(st.sampled_from(PARTITIONERS)), exchange_mode=draw(st.sampled_from(MODES)))
        elif kind == "side_output":
            entry["tag"] = draw(st.sampled_from("ab"))
        elif kind != "union":
            entry.update(parallelism=draw(parallelisms), chaining_strategy=draw(st.sampled_from(strategies)))
            entry["slot_sharing_group"] = draw(st.sampled_from([None] * 9 + ["g"]))
            entry["co_location_group"] = draw(st.sampled_from([None] * 19 + ["k"]))
        listed.append(entry)
    return {
        "name": "random", "default_parallelism": draw(st.integers(1, 5)), "transformations": listed,
        "runtime_mode": "BATCH" if batch else "STREAMING", "batch_shuffle_mode": draw(st.sampled_from(SHUFFLES)),
    }  # fmt: skip


def compiled(topology: dict[str, Any]) -> Compilation:
    return compile_topology(json.dumps(topology))


modest = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


@modest
@given(topologies())
def test_every_program_compiles_or_is_refused_in_one_line(topology: dict[str, Any]) -> None:
    compilation = compiled(topology)
    if compilation.refusal is None:
        assert compilation.execution_graph is not None
    else:
        assert compilation.refusal.stage in ("stream_graph", "job_graph", "execution_graph")
        assert "\n" not in str(compilation.refusal)


@modest
@given(topologies())
def test_compiling_twice_gives_equal_graphs(topology: dict[str, Any]) -> None:
    assert report_graphs(compiled(topology)) == report_graphs(compiled(topology))


@modest
@given(topologies())
def test_chains_partition_the_operators_and_edges_are_kept_or_chained(topology: dict[str, Any]) -> None:
    compilation = compiled(topology)
    if compilation.stream_graph is None or compilation.job_graph is None:
        return
    vertices = compilation.job_graph.vertices.values()
    assert Counter(node.id for v in vertices for node in v.operators) == Counter(list(compilation.stream_graph.nodes))
    assert all(set(v.configs) == {node.id for node in v.operators} for v in vertices)
    vertex_of = {node.id: v.id for v in vertices for node in v.operators}
    leaving = {e for e in compilation.stream_graph.edges if vertex_of[e.source.id] != vertex_of[e.target.id]}
    assert leaving == {edge.stream_edge for edge in compilation.job_graph.edges}
    order = [v.id for v in compilation.job_graph.vertices_in_topological_order()]
    assert sorted(order) == sorted(compilation.job_graph.vertices)
    assert all(order.index(e.producer.id) < order.index(e.target.id) for e in compilation.job_graph.edges)
    assert all(edge is v.inputs[edge.input_index] for v in vertices for edge in v.inputs)
    assert all(dataset.consumers for v in vertices for dataset in v.produced)


@modest
@given(topologies())
def test_the_graphs_agree_in_counts(topology: dict[str, Any]) -> None:
    compilation = compiled(topology)
    graph = compilation.execution_graph
    if graph is None or compilation.job_graph is None:
        return
    vertices = compilation.job_graph.vertices.values()
    assert len(graph.job_vertices) == len(vertices)
    assert graph.n_vertices == sum(v.parallelism for v in vertices)
    assert len(graph.results) == sum(len(v.produced) for v in vertices)
    assert graph.n_partitions == sum(v.parallelism * len(v.produced) for v in vertices)
    assert len(graph.connections) == len(list(compilation.job_graph.edges))


@modest
@given(topologies())
def test_every_partition_is_consumed_as_the_pattern_says(topology: dict[str, Any]) -> None:
    graph = compiled(topology).execution_graph
    if graph is None:
        return
    for connection in graph.connections:
        readers = {
            (partition, consumer)
            for consumer in connection.consumer.vertices
            for group in consumed_groups(graph, consumer)
            if group.connection is connection
            for partition in group.partitions
        }
        m, n = connection.n_partitions, connection.n_consumers
        assert len({partition for partition, _ in readers}) == m
        assert len({consumer for _, consumer in readers}) == n
        assert len(readers) == (m * n if connection.is_all_to_all else max(m, n))
        seen_by_producers = {
            (partition, consumer)
            for partition in range(connection.result.first_partition, connection.result.first_partition + m)
            for group in consumer_groups(graph, partition)
            if group.connection is connection
            for consumer in group.consumers
        }
        assert seen_by_producers == readers


def merged(parts: list[set[int]], links: set[tuple[int, int]]) -> list[set[int]]:
    """Join parts that links hold together."""
    for one, other in links:
        first = next(part for part in parts if one in part)
        second = next(part for part in parts if other in part)
        if first is not second:
            first |= second
            parts.remove(second)
    return parts


def reachable(start: set[int], links: set[tuple[int, int]], parts: list[set[int]]) -> set[int]:
    found = set(start)
    while True:
        targets = {target for source, target in links if source in found} - found
        if not targets:
            return found
        for target in targets:
            found |= next(part for part in parts if target in part)


def regions_by_definition(graph: ExecutionGraph) -> set[frozenset[int]]:
    """Regions found edge by edge: slow, and nothing like the columns."""
    logical = logical_pipelined_regions(graph.job_graph)
    inner = [c for c in graph.connections if logical[c.consumer.id] == logical[c.result.producer.id]]
    found = set()
    for number in set(logical.values()):
        members = [v for v in graph.job_vertices if logical[v.id] == number]
        vertices = [index for v in members for index in v.vertices]
        connections = [c for c in inner if logical[c.consumer.id] == number]
        if any(c.is_all_to_all for c in connections):
            found.add(frozenset(vertices))
            continue
        pipelined: set[tuple[int, int]] = set()
        others: set[tuple[int, int]] = set()
        for c in connections:
            links = pipelined if c.result.result_type.must_be_pipelined_consumed else others
            for consumer in c.consumer.vertices:
                partitions = c.partition_range(c.group_of_consumer(consumer - c.consumer.first))
                links |= {(c.result.producer.first + partition, consumer) for partition in partitions}
        parts = merged([{index} for index in vertices], pipelined)
        reach = {id(part): reachable(part, others, parts) for part in parts}
        cyclic = {
            (min(a), min(b)) for a in parts for b in parts if a is not b and b <= reach[id(a)] and a <= reach[id(b)]
        }
        found |= {frozenset(part) for part in merged(parts, cyclic)}
    return found


@modest
@given(topologies())
def test_regions_partition_the_vertices_as_defined(topology: dict[str, Any]) -> None:
    graph = compiled(topology).execution_graph
    if graph is None:
        return
    regions = [graph.pipelined_regions.vertices_of(r).tolist() for r in range(graph.pipelined_regions.count)]
    assert sorted(index for region in regions for index in region) == list(range(graph.n_vertices))
    assert [region[0] for region in regions] == sorted(region[0] for region in regions)
    assert {frozenset(region) for region in regions} == regions_by_definition(graph)


def slots_by_definition(graph: ExecutionGraph) -> list[int]:
    """The strategy subtask by subtask, with sets."""
    members: list[set[int]] = []
    of_group: list[object] = []
    group_of: dict[int, int] = {}
    constraints: dict[tuple[int, int], int] = {}
    job_vertex_of = {index: v.index for v in graph.job_vertices for index in v.vertices}

    def free(group: int, index: int, shared: object) -> bool:
        taken = job_vertex_of[index] in {job_vertex_of[member] for member in members[group]}
        return of_group[group] is shared and not taken

    for job_vertex in graph.job_vertices:
        shared, co_location = job_vertex.job_vertex.slot_sharing_group, job_vertex.job_vertex.co_location_group
        left = []
        for subtask, index in enumerate(job_vertex.vertices):
            group = constraints.get((id(co_location), subtask)) if co_location else None
            if group is None:
                offers = (group_of[p] for g in consumed_groups(graph, index) for p in g.producers)
                group = next((offer for offer in offers if free(offer, index, shared)), None)
            if group is None:
                left.append(index)
            else:
                members[group].add(index)
                group_of[index] = group
        for index in left:
            group = next((g for g in range(len(members)) if free(g, index, shared)), None)
            if group is None:
                group = len(members)
                members.append(set())
                of_group.append(shared)
            members[group].add(index)
            group_of[index] = group
        if co_location:
            for subtask, index in enumerate(job_vertex.vertices):
                constraints[id(co_location), subtask] = group_of[index]
    return [group_of[index] for index in range(graph.n_vertices)]


@modest
@given(topologies())
def test_slots_are_shared_as_defined(topology: dict[str, Any]) -> None:
    graph = compiled(topology).execution_graph
    if graph is None:
        return
    groups = local_input_preferred(graph)
    assert groups.group_of.tolist() == slots_by_definition(graph)
    assert sorted(index for members in groups.members() for index in members.tolist()) == list(range(graph.n_vertices))
