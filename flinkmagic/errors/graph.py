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

    def __init__(self, where: str, parallelism: int) -> None:
        self.where, self.parallelism = where, parallelism
        super().__init__(f"{where}: the parallelism is {parallelism}. Give 1 or more, or -1 for the job's default.")


class OperatorMaxParallelismError(StreamGraphRefusedError):
    """A max parallelism out of range."""

    def __init__(self, where: str, max_parallelism: int, upper_bound: int) -> None:
        self.where, self.max_parallelism, self.upper_bound = where, max_parallelism, upper_bound
        super().__init__(f"{where}: the max parallelism is {max_parallelism}. Give 1 to {upper_bound}.")


class EmptyOutputTagError(StreamGraphRefusedError):
    """A side output without a name."""

    def __init__(self) -> None:
        super().__init__("A side output's tag is empty. Give it a name.")


class SideOutputTypeClashError(StreamGraphRefusedError):
    """One side output read as two types."""

    def __init__(self, tag: str, types: tuple[str, str]) -> None:
        self.tag, self.types = tag, types
        super().__init__(f"The side output {tag!r} is read as {types[0]} and as {types[1]}. Use one type, or two tags.")


class EmptyUnionError(StreamGraphRefusedError):
    """A union without inputs."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The union {name!r} has no inputs. Give it at least one.")


class UnionTypeMismatchError(StreamGraphRefusedError):
    """A union of streams of different types."""

    def __init__(self, name: str, position: int, expected: str, found: str) -> None:
        self.name, self.position, self.expected, self.found = name, position, expected, found
        super().__init__(
            f"Input {position} of the union {name!r} is a stream of {found}, the first one of {expected}. "
            "Convert one of them."
        )


class FeedbackParallelismError(StreamGraphRefusedError):
    """A feedback edge whose parallelism is not the iteration's."""

    def __init__(self, name: str, parallelism: int, feedback: str, feedback_parallelism: int) -> None:
        self.name, self.parallelism = name, parallelism
        self.feedback, self.feedback_parallelism = feedback, feedback_parallelism
        super().__init__(
            f"The iteration {name!r} has parallelism {parallelism}, but its feedback {feedback!r} has "
            f"{feedback_parallelism}. Give both the same."
        )


class NoFeedbackEdgesError(StreamGraphRefusedError):
    """An iteration that nothing is fed back into."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"Nothing is fed back into the iteration {name!r}. Add a feedback edge, or drop it.")


class IterationInBatchError(StreamGraphRefusedError):
    """An iteration in BATCH mode."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The iteration {name!r} cannot run in BATCH mode. Use STREAMING.")


class UnboundedSourceInBatchError(StreamGraphRefusedError):
    """An unbounded source in BATCH mode."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The source {name!r} is unbounded, and the mode is BATCH. Use STREAMING, or bound it.")


class CacheInStreamingError(StreamGraphRefusedError):
    """A cached result in STREAMING mode."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} cannot be cached in STREAMING mode. Use BATCH.")


class CacheOfVirtualStreamError(StreamGraphRefusedError):
    """A cache of something that is no operator."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        super().__init__(f"{name!r} caches a {kind}. Only an operator or a side output can be cached.")


class NoOperatorsError(StreamGraphRefusedError):
    """A program without operators."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The program {name!r} has no operators: nothing consumes its sources. Add one.")


class ForwardChangesParallelismError(StreamGraphRefusedError):
    """FORWARD between operators of different parallelism."""

    def __init__(self, source: str, source_parallelism: int, target: str, target_parallelism: int) -> None:
        self.source, self.source_parallelism = source, source_parallelism
        self.target, self.target_parallelism = target, target_parallelism
        super().__init__(
            f"FORWARD from {source!r} (parallelism {source_parallelism}) to {target!r} (parallelism "
            f"{target_parallelism}) cannot change the parallelism. Use rescale or rebalance."
        )


class DuplicateUidError(StreamGraphRefusedError):
    """Two operators with one uid."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        super().__init__(f"The uid {uid!r} is used twice. Give each operator one of its own.")


class DuplicateTransformationIdError(StreamGraphRefusedError):
    """Two transformations with one id."""

    def __init__(self, id: int) -> None:
        self.id = id
        super().__init__(f"Two transformations have the id {id}. Ids are unique within an environment.")


class SplitOfSplitError(StreamGraphRefusedError):
    """A split of a split stream."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} splits a stream that is split already. Use side outputs.")


class SplitOfSideOutputError(StreamGraphRefusedError):
    """A split of a side output."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} splits a side output. Use further side outputs.")


class SideOutputOfSelectError(StreamGraphRefusedError):
    """A side output read from a selection."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        super().__init__(f"The side output {tag!r} is read from a selection. Read it from the operator.")


class HybridInStreamingError(JobGraphRefusedError):
    """A hybrid exchange in STREAMING mode."""

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target
        super().__init__(f"The exchange {source!r} -> {target!r} is hybrid, and the mode is STREAMING. Use BATCH.")


class HybridWithSlotSharingGroupError(JobGraphRefusedError):
    """A hybrid exchange together with an operator's own slot sharing group."""

    def __init__(self, vertex: str, group: str) -> None:
        self.vertex, self.group = vertex, group
        super().__init__(
            f"{vertex!r} is in the slot sharing group {group!r}, and the job has hybrid exchanges, which allow the "
            "default group only. Drop one of the two."
        )


class CoLocationAcrossSlotSharingGroupsError(JobGraphRefusedError):
    """A co-location group over several slot sharing groups."""

    def __init__(self, vertex: str, group: str) -> None:
        self.vertex, self.group = vertex, group
        super().__init__(
            f"{vertex!r} is in the co-location group {group!r}, but not in the slot sharing group of its other "
            "operators. Co-located operators share slots."
        )


class ParallelismAboveMaxError(ExecutionGraphRefusedError):
    """A parallelism above the max parallelism."""

    def __init__(self, vertex: str, parallelism: int, max_parallelism: int) -> None:
        self.vertex, self.parallelism, self.max_parallelism = vertex, parallelism, max_parallelism
        super().__init__(
            f"{vertex!r} has parallelism {parallelism}, above its max parallelism {max_parallelism}. "
            "Lower the one or raise the other."
        )


class CoLocationAcrossRegionsError(ExecutionGraphRefusedError):
    """Co-located subtasks in different pipelined regions."""

    def __init__(self, vertex: str, subtask: int) -> None:
        self.vertex, self.subtask = vertex, subtask
        super().__init__(
            f"Subtask {subtask} of {vertex!r} is co-located with a subtask of another pipelined region. Co-located "
            "operators must be connected by pipelined exchanges."
        )


class TopologyError(UserError):
    """An invalid topology file: bad JSON, a wrong type, an id that does not exist."""

    def __init__(self, place: str, problem: str) -> None:
        self.place, self.problem = place, problem
        super().__init__(f"{place}: {problem}" if place else problem)


class PipelinedExchangeError(UserError):
    """Pipelined exchanges on a session that cannot run them."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"--exchange pipelined: no exchange can be pipelined here: {why}. Leave the option out.")
