"""Runs beside a cell and notes what it does: its DataFrame calls, its writes, what its names stand for afterwards."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from types import FrameType, TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from flinkmagic.capturing import capture_reader, patches
from flinkmagic.capturing.cell_labels import remember
from flinkmagic.capturing.deferral import Deferral
from flinkmagic.capturing.frames import FrameRegistry
from flinkmagic.capturing.java_classes import require_compiler
from flinkmagic.capturing.merging import link
from flinkmagic.capturing.observations import await_metrics
from flinkmagic.capturing.operator_options import OperatorOptions
from flinkmagic.capturing.pending import Cause, Effects, PendingWrites, check_overwrites
from flinkmagic.capturing.program import (
    CellSource,
    DeferredWrite,
    ImmediateStatement,
    Program,
    RecordedCall,
    SessionSnapshot,
    SkippedWrite,
    SourceLocation,
)
from flinkmagic.capturing.provenance import SourceReader, expr_ids, user_frame
from flinkmagic.capturing.targets import PathResolver, Source
from flinkmagic.errors import SparkConnectSessionError
from flinkmagic.errors.base import add_note
from flinkmagic.jvm.java import is_stopped


class capture:  # noqa: N801 - reads as the statement that it is used in
    """Capture what PySpark code does, with its writes deferred.

    Within the ``with`` block what ``DataFrameWriter`` and ``DataFrameWriterV2`` write is analysed by Spark, checked,
    and put off; everything else runs as always. A line that touches what is pending, or may touch anything, needs it
    done: pending writes are deployed first (`run_pending`), or the line is refused before it has any effect.

    The block's own thread is captured, and the threads that it starts: what those write is written immediately. Where
    the block raises, what was pending is deployed, too, or the error says that it is not going to run; nothing is
    registered. An interrupt drops what is pending.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    name : str, optional
        The program's name.
    location : CellSource, optional
        The cell, where the code is one. Otherwise lines are those of the files in which they stand.
    run_pending : callable, optional
        Called with a `Program` of the writes that are pending, to run them and to return when they are done, where
        a line needs them. Without it such a line is refused.
    namespace : mapping, optional
        Where the block binds its names; by default the variables of the function, or module, around the block.
    earlier : iterable of Program, optional
        What was captured before, oldest first: the block may go on from DataFrames that were made there, and their
        operators keep their words.
    on_write : callable, optional
        Called for each deferred write with the number of those that are pending.
    awaited : iterable of DeferredWrite, optional
        What was captured before and has not been run.
    on_awaited : callable, optional
        Called with a line that reads where an awaited write is to write, and with that write.

    Raises
    ------
    SparkConnectSessionError
        For a Spark Connect session.
    DriverClassesRefusedError
        Where the session's JVM does not compile our Java classes. The block is not run.

    Examples
    --------
    >>> with capture(spark) as program:  # doctest: +SKIP
    ...     df = spark.range(3)
    ...     df.write.parquet("out")
    >>> program.writes[0].location.code  # doctest: +SKIP
    'df.write.parquet("out")'
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        name: str | None = None,
        location: CellSource | None = None,
        run_pending: Callable[[Program], object] | None = None,
        namespace: Mapping[str, Any] | None = None,
        earlier: Iterable[Program] = (),
        on_write: Callable[[int], None] | None = None,
        awaited: Iterable[DeferredWrite] = (),
        on_awaited: Callable[[SourceLocation, DeferredWrite], None] | None = None,
    ) -> None:
        if type(spark).__module__.startswith("pyspark.sql.connect"):
            raise SparkConnectSessionError
        self._program = Program(
            spark,
            name=name,
            cell=location,
            namespace=namespace if isinstance(namespace, MutableMapping) else None,
        )
        if location is not None:
            remember(location)
        self._recorder = Recorder(self._program, run_pending, tuple(earlier), on_write)
        if on_awaited is not None:
            self._recorder.awaited, self._recorder.on_awaited = list(awaited), on_awaited
        self._namespace = namespace
        self._before: dict[str, DataFrame] = {}

    def __enter__(self) -> Program:
        require_compiler(self._program.spark)
        self._before = _bound_frames(self._variables())
        self._recorder.begin(user_frame())
        patches.activate(self._recorder)
        return self._program

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        patches.deactivate(self._recorder)
        if error is None:
            self._recorder.finish(self._before, _bound_frames(self._variables()))
        else:
            self._recorder.fail(error)

    def _variables(self) -> Mapping[str, Any]:
        if self._namespace is not None:
            return self._namespace
        frame = user_frame()
        return {} if frame is None else frame.f_locals


def _bound_frames(namespace: Mapping[str, Any]) -> dict[str, DataFrame]:
    """The DataFrames that have a name of the user's (IPython's own begin with an underscore)."""
    return {
        name: value
        for name, value in list(namespace.items())
        if isinstance(value, DataFrame) and not name.startswith("_")
    }


def name_results(program: Program, namespace_before: Mapping[str, Any], namespace_after: Mapping[str, Any]) -> None:
    """Set a program's `variables` to the DataFrames that were bound between two states of a namespace.

    Where the program writes nothing, those of them that it did nothing else with become its `results`. A streaming
    DataFrame is none: it has no rows to keep. Neither is what a command answered: that has run.
    """
    before, after = _bound_frames(namespace_before), _bound_frames(namespace_after)
    bound = {name: df for name, df in after.items() if before.get(name) is not df}
    program.variables = dict(sorted(bound.items(), key=lambda item: program.registry.add(item[1])))
    for df in program.variables.values():
        program.registry.keep(df)
    program.frames = dict(program.registry.kept)
    program.results = {}
    if program.writes or program.skipped or program.deployed or program.immediate:
        return
    used = program.used.union(*(call.inputs for call in program.calls))
    first = {id(df): name for name, df in reversed(program.variables.items())}
    program.results = {
        name: df
        for name, df in program.variables.items()
        if first[id(df)] == name and program.registry.add(df) not in used and _has_rows_to_keep(df)
    }


def _has_rows_to_keep(df: DataFrame) -> bool:
    if capture_reader.is_part_of_another(df._jdf.queryExecution()) or df.isStreaming:
        return False
    return bool(df._jdf.queryExecution().commandExecuted().nodeName() != "CommandResult")


class Recorder:
    """Notes the calls of one `capture`, and decides of each write and each line that touches one.

    Only the user's own calls come here, not those that PySpark makes to serve them: `patches` sees to that.

    Attributes
    ----------
    ended : bool
        The session has been stopped: nothing is heard any more.
    """

    def __init__(
        self,
        program: Program,
        run_pending: Callable[[Program], object] | None,
        earlier: tuple[Program, ...] = (),
        on_write: Callable[[int], None] | None = None,
    ) -> None:
        self.program = program
        self.on_write = on_write
        self.local_rdds = {number for program in earlier for number in program.local_rdds}
        self.observations: list[Any] = []
        self.awaited: list[DeferredWrite] = []
        self.on_awaited: Callable[[SourceLocation, DeferredWrite], None] | None = None
        self._earlier = earlier
        self.spark: Any = program.spark
        self.thread = threading.get_ident()
        self.ended = False
        self.threads = {self.thread}
        self._depths = threading.local()
        self.token: Any = None
        self.source = SourceReader(program.cell)
        self.frames: FrameRegistry = program.registry
        self.grouped_text: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.views: dict[str, DataFrame] = {}
        self.tables: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.pending = PendingWrites(self.spark, None if run_pending is None else self._deploy_pending)
        self.writes = Deferral(self)
        self._run_pending = run_pending
        self._recording = threading.Lock()  # a cell's threads call side by side
        self._calls: list[RecordedCall] = []
        self._seen_ids: set[int] = set()
        self._options: dict[int, OperatorOptions] = {}
        self._used: set[int] = set()
        self._actions = 0
        self._skipped: list[SkippedWrite] = []
        self._immediate: list[ImmediateStatement] = []
        self._snapshots: dict[int, tuple[bytes, SessionSnapshot]] = {}
        self._resolver: PathResolver | None = None
        self._closing: SessionSnapshot | None = None

    @property
    def depth(self) -> int:
        """How many hooks this thread is in: calls that it makes there serve the outermost one."""
        return getattr(self._depths, "depth", 0)

    @depth.setter
    def depth(self, depth: int) -> None:
        self._depths.depth = depth

    @property
    def resolver(self) -> PathResolver:
        if self._resolver is None:
            self._resolver = PathResolver(self.spark)
        return self._resolver

    def begin(self, frame: FrameType | None) -> None:
        """Note the frame in which the captured code stands."""
        self.source.begin(frame)

    def handler(self) -> SourceLocation | None:
        """The ``try`` whose handlers wait for the running line to raise, in the cell or in what it calls."""
        return self.source.handler(user_frame())

    def location(self) -> SourceLocation:
        """The user's line that is running."""
        return self.source.location(user_frame())

    def settle(self, effects: Effects) -> bool:
        """See to it that a line with these effects may run now; True where pending writes were deployed for it.

        Raises
        ------
        PendingWriteError
            Where they may not be deployed.
        """
        return bool(self.pending) and self.pending.settle(effects, self.location)

    def record(
        self, method: str, text: str, location: SourceLocation, inputs: Iterable[DataFrame], output: DataFrame
    ) -> None:
        """Note that a call made a DataFrame."""
        with self._recording:
            self._record(method, text, location, tuple(inputs), output)

    def _record(
        self, method: str, text: str, location: SourceLocation, inputs: tuple[DataFrame, ...], output: DataFrame
    ) -> None:
        for df in inputs:
            if self.frames.number(df) is None:
                self._seen_ids.update(expr_ids(df._jdf))
        numbers = tuple(dict.fromkeys(self.frames.use(df) for df in inputs))
        ids = expr_ids(output._jdf)
        new = tuple(i for i in ids if i not in self._seen_ids)
        self._seen_ids.update(new)
        number = self.frames.add(output)
        self._calls.append(RecordedCall(len(self._calls), method, text, location, numbers, number, new, ids))

    def use(self, frames: Iterable[DataFrame]) -> None:
        """Note that rows of frames are read, or that somebody else is given them: a name of theirs asks for no more."""
        with self._recording:
            self._used.update(map(self.frames.add, frames))

    def read(self, sources: Iterable[Source]) -> None:
        """Tell where what is read is still to be written by what was captured before."""
        for source in sources:
            for write in [write for write in self.awaited if source.overlaps(write.target)]:
                self.awaited.remove(write)
                if self.on_awaited is not None:
                    self.on_awaited(self.location(), write)

    def ran(self) -> None:
        """Note that an action has run."""
        with self._recording:
            self._actions += 1

    def mark(self, df: DataFrame, options: OperatorOptions) -> None:
        """Note what is asked of the operators of a frame; one that was made before is known from here on."""
        number = self.frames.number(df)
        is_known = any(call.output == number for call in self._calls) if number is not None else False
        if not is_known and all(program.frame_of(df) is None for program in self._earlier):
            assert options.location is not None
            ids = expr_ids(df._jdf)
            number, self._seen_ids = self.frames.add(df), self._seen_ids.union(ids)
            index, text = len(self._calls), options.location.code
            self._calls.append(RecordedCall(index, "with_options", text, options.location, (), number, ids, ids))
        number = self.frames.add(df)
        self._options[number] = options.over(self._options.get(number))

    def close(self) -> None:
        """Note the session's state for the last time: it is about to be stopped."""
        self._closing = self.snapshot(self.spark)

    def closed(self) -> None:
        """Hear nothing any more if the session has been stopped now."""
        self.ended = is_stopped(self.spark)
        if not self.ended:
            self._closing = None

    def pending_impurity(self) -> bool:
        """Whether a function of a pending write may touch files, clocks or chance."""
        return any(write.impure for write in self.pending.writes)

    def skip(self, write: SkippedWrite) -> None:
        """Note a write that has nothing to do."""
        self._skipped.append(write)

    def note_immediate(self, text: str) -> None:
        """Note that a line has changed rows already."""
        self._immediate.append(ImmediateStatement(text, self.location()))

    def snapshot(self, spark: Any) -> SessionSnapshot:
        """The session's state now; the same object as before where nothing changed."""
        state = capture_reader.session_facts(spark)
        known = self._snapshots.get(id(spark))
        if known is not None and known[0] == state:
            return known[1]
        facts = capture_reader.as_json(state)
        namespace = ".".join(facts["namespace"])
        snapshot = SessionSnapshot(facts["conf"], facts["catalog"], namespace, facts["hadoop"])
        self._snapshots[id(spark)] = (state, snapshot)
        return snapshot

    def _deploy_pending(self) -> None:
        assert self._run_pending is not None
        check_overwrites(self.pending.writes)
        partial = Program(self.spark, self.program.name, self.program.cell, registry=self.frames)
        self._fill(partial)
        link(partial, self._earlier)
        self._run_pending(partial)

    def _fill(self, program: Program) -> None:
        program.writes = tuple(self.pending.writes)
        program.calls = tuple(self._calls)
        program.used, program.actions = frozenset(self._used), self._actions
        program.skipped, program.settlements = tuple(self._skipped), tuple(self.pending.settlements)
        program.immediate = tuple(self._immediate)
        program.local_rdds = frozenset(self.local_rdds)
        program.options = dict(self._options)
        program.session = self._closing or self.snapshot(self.spark)
        program.frames = dict(self.frames.kept)
        program.complete = True

    def finish(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Complete the program of a block that ended well.

        Raises
        ------
        OverwritesInputError
            Where the job as a whole would overwrite what it reads.
        PendingWriteError
            Where a line was refused, and the code around it has dropped the error.
        """
        self.source.end()
        if self.pending.unheeded is not None:
            raise self.pending.unheeded
        check_overwrites(self.pending.writes)
        self._fill(self.program)
        name_results(self.program, before, self._without_rebound(before, after))
        if self.ended or is_stopped(self.spark):
            self.program.results = {}
        self.program.awaited_metrics = await_metrics(self.observations, self.program)
        link(self.program, self._earlier)

    def fail(self, error: BaseException) -> None:
        """Leave things as the plain cell would, whose line raises `error`: what comes before it is written.

        Raises
        ------
        JobFailedError
            Where what was pending has failed.
        """
        self.source.end()
        writes = tuple(self.pending.writes)
        if not writes:
            return
        listed = "; ".join(f"{write.path} ({write.location})" for write in writes)
        if isinstance(error, KeyboardInterrupt):
            add_note(error, f"Captured before the interrupt, and dropped: the writes to {listed}.")
        elif self.pending.can_deploy:
            line = self.source.raised_at(error.__traceback__)
            self.pending.deploy(line, Cause.EXCEPTION, "raises after the write to", writes[0])
        else:
            add_note(error, f"Captured before this line, and not going to run: the writes to {listed}.")

    def _without_rebound(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
        """The names afterwards, without what a job that ended meanwhile did to them: let them stand for kept rows."""

        def is_same(old: DataFrame, new: DataFrame) -> bool:
            numbers = [(program.frame_of(old), program.frame_of(new)) for program in self._earlier]
            return any(one is not None and one == other for one, other in numbers)

        return {
            name: before[name] if name in before and is_same(before[name], df) else df for name, df in after.items()
        }
