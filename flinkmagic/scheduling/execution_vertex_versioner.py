"""Tells deployments and restarts that something newer has been decided (Flink's `ExecutionVertexVersioner`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class ExecutionVertexVersioner:
    """A number for each vertex that grows with each decision about it."""

    def __init__(self, n_vertices: int) -> None:
        self._versions = [0] * n_vertices

    def record_modifications(self, vertices: Iterable[int]) -> list[int]:
        """Make all that was decided about the vertices void; their new versions, in the order given."""
        versions = self._versions
        recorded = []
        for vertex in vertices:
            versions[vertex] += 1
            recorded.append(versions[vertex])
        return recorded

    def record_all(self) -> None:
        """Make all that was decided about any vertex void."""
        self._versions = [version + 1 for version in self._versions]

    def is_modified(self, vertex: int, version: int) -> bool:
        """Whether something newer has been decided about a vertex."""
        return self._versions[vertex] != version

    def unmodified(self, vertices: Sequence[int], versions: Sequence[int]) -> list[int]:
        """Those of the vertices about which nothing newer has been decided."""
        return [v for v, version in zip(vertices, versions, strict=True) if self._versions[v] == version]
