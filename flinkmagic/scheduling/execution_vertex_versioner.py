"""Detects deployments and restarts that a later decision has replaced (Flink's `ExecutionVertexVersioner`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class ExecutionVertexVersioner:
    """Keeps a number for each vertex that grows with each decision about it."""

    def __init__(self, n_vertices: int) -> None:
        self._versions = [0] * n_vertices

    def record_modifications(self, vertices: Iterable[int]) -> list[int]:
        """Void earlier decisions about the vertices; return their new versions, in the order given."""
        versions = self._versions
        recorded = []
        for vertex in vertices:
            versions[vertex] += 1
            recorded.append(versions[vertex])
        return recorded

    def record_all(self) -> None:
        """Void earlier decisions about all vertices."""
        self._versions = [version + 1 for version in self._versions]

    def is_modified(self, vertex: int, version: int) -> bool:
        """Return whether there is a later decision about a vertex."""
        return self._versions[vertex] != version

    def unmodified(self, vertices: Sequence[int], versions: Sequence[int]) -> list[int]:
        """Return those of the vertices about which there is no later decision."""
        return [v for v, version in zip(vertices, versions, strict=True) if self._versions[v] == version]
