"""Graphs that are refused, and where."""

from __future__ import annotations

from flinkmagic.errors.base import UserError


class GraphRefusedError(UserError):
    """A program from which no graph can be made; `stage` says which graph refused it, as Flink would."""

    stage = ""


class StreamGraphRefusedError(GraphRefusedError):
    """Refused while transformations became a StreamGraph."""

    stage = "stream_graph"


class JobGraphRefusedError(GraphRefusedError):
    """Refused while the StreamGraph became a JobGraph."""

    stage = "job_graph"


class ExecutionGraphRefusedError(GraphRefusedError):
    """Refused while the JobGraph became an ExecutionGraph."""

    stage = "execution_graph"


class OperatorParallelismError(StreamGraphRefusedError):
    """A parallelism that is neither positive nor -1."""

    where: str
    parallelism: int

    template = "{where}: the parallelism is {parallelism}. Give 1 or more, or -1 for the job's default."


class OperatorMaxParallelismError(StreamGraphRefusedError):
    """A max parallelism out of range."""

    where: str
    max_parallelism: int
    upper_bound: int

    template = "{where}: the max parallelism is {max_parallelism}. Give 1 to {upper_bound}."


class EmptyOutputTagError(StreamGraphRefusedError):
    """A side output without a name."""

    template = "A side output's tag is empty. Give it a name."


class SideOutputTypeClashError(StreamGraphRefusedError):
    """One side output read as two types."""

    tag: str
    types: tuple[str, str]

    def __str__(self) -> str:
        first, second = self.types
        return f"The side output {self.tag!r} is read as {first} and as {second}. Use one type, or two tags."


class EmptyUnionError(StreamGraphRefusedError):
    """A union without inputs."""

    name: str

    template = "The union {name!r} has no inputs. Give it at least one."


class UnionTypeMismatchError(StreamGraphRefusedError):
    """A union of streams of different types."""

    name: str
    position: int
    expected: str
    found: str

    template = (
        "Input {position} of the union {name!r} is a stream of {found}, the first one of {expected}. "
        "Convert one of them."
    )


class FeedbackParallelismError(StreamGraphRefusedError):
    """A feedback edge whose parallelism is not the iteration's."""

    name: str
    parallelism: int
    feedback: str
    feedback_parallelism: int

    template = (
        "The iteration {name!r} has parallelism {parallelism}, but its feedback {feedback!r} has "
        "{feedback_parallelism}. Give both the same."
    )


class NoFeedbackEdgesError(StreamGraphRefusedError):
    """An iteration that nothing is fed back into."""

    name: str

    template = "Nothing is fed back into the iteration {name!r}. Add a feedback edge, or drop it."


class IterationInBatchError(StreamGraphRefusedError):
    """An iteration in BATCH mode."""

    name: str

    template = "The iteration {name!r} cannot run in BATCH mode. Use STREAMING."


class UnboundedSourceInBatchError(StreamGraphRefusedError):
    """An unbounded source in BATCH mode."""

    name: str

    template = "The source {name!r} is unbounded, and the mode is BATCH. Use STREAMING, or bound it."


class CacheInStreamingError(StreamGraphRefusedError):
    """A cached result in STREAMING mode."""

    name: str

    template = "{name!r} cannot be cached in STREAMING mode. Use BATCH."


class CacheOfVirtualStreamError(StreamGraphRefusedError):
    """A cache of something that is no operator."""

    name: str
    kind: str

    template = "{name!r} caches a {kind}. Only an operator or a side output can be cached."


class NoOperatorsError(StreamGraphRefusedError):
    """A program without operators."""

    name: str

    template = "The program {name!r} has no operators: nothing consumes its sources. Add one."


class ForwardChangesParallelismError(StreamGraphRefusedError):
    """FORWARD between operators of different parallelism."""

    source: str
    source_parallelism: int
    target: str
    target_parallelism: int

    template = (
        "FORWARD from {source!r} (parallelism {source_parallelism}) to {target!r} (parallelism "
        "{target_parallelism}) cannot change the parallelism. Use rescale or rebalance."
    )


class DuplicateUidError(StreamGraphRefusedError):
    """Two operators with one uid."""

    uid: str

    template = "The uid {uid!r} is used twice. Give each operator one of its own."


class DuplicateTransformationIdError(StreamGraphRefusedError):
    """Two transformations with one id."""

    id: int

    template = "Two transformations have the id {id}. Give one of them another, or none: it is then assigned."


class SplitOfSplitError(StreamGraphRefusedError):
    """A split of a split stream."""

    name: str

    template = "{name!r} splits a stream that is split already. Use side outputs."


class SplitOfSideOutputError(StreamGraphRefusedError):
    """A split of a side output."""

    name: str

    template = "{name!r} splits a side output. Use further side outputs."


class SideOutputOfSelectError(StreamGraphRefusedError):
    """A side output read from a selection."""

    tag: str

    template = "The side output {tag!r} is read from a selection. Read it from the operator."


class HybridInStreamingError(JobGraphRefusedError):
    """A hybrid exchange in STREAMING mode."""

    source: str
    target: str

    template = "The exchange {source!r} -> {target!r} is hybrid, and the mode is STREAMING. Use BATCH."


class HybridWithSlotSharingGroupError(JobGraphRefusedError):
    """A hybrid exchange together with an operator's own slot sharing group."""

    vertex: str
    group: str

    template = (
        "{vertex!r} is in the slot sharing group {group!r}, and the job has hybrid exchanges, which allow the "
        "default group only. Drop one of the two."
    )


class CoLocationAcrossSlotSharingGroupsError(JobGraphRefusedError):
    """A co-location group over several slot sharing groups."""

    vertex: str
    group: str

    template = (
        "{vertex!r} is in the co-location group {group!r}, but not in the slot sharing group of its other "
        "operators. Co-located operators share slots."
    )


class ParallelismAboveMaxError(ExecutionGraphRefusedError):
    """A parallelism above the max parallelism."""

    vertex: str
    parallelism: int
    max_parallelism: int

    template = (
        "{vertex!r} has parallelism {parallelism}, above its max parallelism {max_parallelism}. "
        "Lower the one or raise the other."
    )


class CoLocationAcrossRegionsError(ExecutionGraphRefusedError):
    """Co-located subtasks in different pipelined regions."""

    vertex: str
    subtask: int

    template = (
        "Subtask {subtask} of {vertex!r} is co-located with a subtask of another pipelined region. Co-located "
        "operators must be connected by pipelined exchanges."
    )


class TopologyError(UserError):
    """An invalid topology file: bad JSON, a wrong type, an id that does not exist."""

    place: str
    problem: str

    def __str__(self) -> str:
        told = f"{self.place}: {self.problem}" if self.place else self.problem
        return f"{told}. Correct it; flinkmagic/graph/topology.md describes the format."


class PipelinedExchangeError(UserError):
    """Pipelined exchanges on a session that cannot run them."""

    why: str

    template = "--exchange pipelined: no exchange can be pipelined here: {why}. Leave the option out."
