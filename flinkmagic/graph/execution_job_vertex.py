"""A JobVertex in the ExecutionGraph: its subtasks are a range of global indices."""

from __future__ import annotations

from flinkmagic.errors.graph import ParallelismAboveMaxError
from flinkmagic.graph.intermediate_result import Connection, IntermediateResult
from flinkmagic.graph.job_graph import JobVertex
from flinkmagic.graph.transformations import PARALLELISM_DEFAULT

DEFAULT_LOWER_BOUND_MAX_PARALLELISM = 1 << 7
"""``KeyGroupRangeAssignment.DEFAULT_LOWER_BOUND_MAX_PARALLELISM``."""


class ExecutionJobVertex:
    """All subtasks of a JobVertex. Mirrors ``ExecutionJobVertex``."""

    __slots__ = ("first", "index", "inputs", "job_vertex", "max_parallelism", "parallelism", "produced_results")

    def __init__(self, job_vertex: JobVertex, index: int, first: int, upper_bound: int) -> None:
        self.job_vertex = job_vertex
        self.index = index
        """Among the job vertices in topological order."""
        self.first = first
        """Subtask i is the execution vertex ``first + i``."""
        self.parallelism = 1 if job_vertex.parallelism == PARALLELISM_DEFAULT else job_vertex.parallelism
        """As decided: -1 is 1."""
        self.max_parallelism = job_vertex.max_parallelism
        """As decided: derived from the parallelism if none was given."""
        if self.max_parallelism < 1:
            self.max_parallelism = default_max_parallelism(self.parallelism, upper_bound)
        if self.parallelism > self.max_parallelism:
            raise ParallelismAboveMaxError(job_vertex.name, self.parallelism, self.max_parallelism)
        self.produced_results: list[IntermediateResult] = []
        """In the order of the data sets."""
        self.inputs: list[Connection] = []
        """In the order of the job edges."""

    @property
    def id(self) -> str:
        """The job vertex's id."""
        return self.job_vertex.id

    @property
    def name(self) -> str:
        """The job vertex's name."""
        return self.job_vertex.name

    @property
    def vertices(self) -> range:
        """The global indices of the subtasks."""
        return range(self.first, self.first + self.parallelism)

    @property
    def slice(self) -> slice:
        """The subtasks' place in a column that has a value for each execution vertex."""
        return slice(self.first, self.first + self.parallelism)

    @property
    def consumers(self) -> list[ExecutionJobVertex]:
        """The job vertices that read its results: one for each connection."""
        return [connection.consumer for result in self.produced_results for connection in result.consumers]

    def task_name(self, subtask: int) -> str:
        """Return a subtask's display name: ``Map (3/8)``."""
        return f"{self.job_vertex.name} ({subtask + 1}/{self.parallelism})"

    def __repr__(self) -> str:
        return f"ExecutionJobVertex({self.name!r}, parallelism={self.parallelism}, first={self.first})"


def default_max_parallelism(parallelism: int, upper_bound: int) -> int:
    """Return 1.5 times the parallelism, rounded up to a power of two, bounded (``computeDefaultMaxParallelism``)."""
    roomy = parallelism + parallelism // 2
    return min(max(1 << (roomy - 1).bit_length(), DEFAULT_LOWER_BOUND_MAX_PARALLELISM), upper_bound)
