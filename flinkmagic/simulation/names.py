"""Lists the names by which people call a job vertex."""

from __future__ import annotations

from flinkmagic.graph.job_graph import JobVertex

_PREFIXES = ("Source: ", "Sink: ")


def names_of(vertex: JobVertex) -> list[str]:
    """Return a vertex's own name and those of its operators, with and without Flink's prefixes of sources and sinks."""
    names = [vertex.name, *(operator.name for operator in vertex.operators)]
    bare = [name.removeprefix(prefix) for name in names for prefix in _PREFIXES]
    return list(dict.fromkeys([*names, *bare]))
