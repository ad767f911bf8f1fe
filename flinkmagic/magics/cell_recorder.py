"""Records what cells read and define as they run, and says which of them are stale (see `session.staleness`)."""

from __future__ import annotations

import functools
import logging
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

from flinkmagic.session.staleness.cell_names import CellNames, cell_names
from flinkmagic.session.staleness.cell_records import CellRecord, CellRecords, ReadValue, ValueFact, cell_of_text
from flinkmagic.session.staleness.frame_facts import FilesNow, FrameFacts, settings_now, settings_then
from flinkmagic.session.staleness.stale_cells import Present, StaleCell, stale_cells
from flinkmagic.session.staleness.value_facts import ValueFacts, functions_in, names_of_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flinkmagic.capturing.frames import FrameRegistry
    from flinkmagic.capturing.program import Program
    from flinkmagic.reuse.result_keys import ListedFiles

P = ParamSpec("P")
T = TypeVar("T")
_LOG = logging.getLogger(__name__)

_PYTHON_MAGICS = frozenset({"capture", "flinkgraph", "prun", "time", "timeit"})
"""Cell magics below which a cell's own Python stands."""

MOST_ACTIONS = 20
"""Of how many actions of a cell, on DataFrames without a name, the files are recorded."""

_again: ContextVar[CellRecord | None] = ContextVar("flinkmagic_again", default=None)


def running_again() -> CellRecord | None:
    """Return the cell whose code is executed again inside another cell; None if none is."""
    return _again.get()


@contextmanager
def executed_again(record: CellRecord) -> Iterator[None]:
    """Let what runs inside be a run of that cell."""
    token = _again.set(record)
    try:
        yield
    finally:
        _again.reset(token)


@dataclass(eq=False)
class CellRecording:
    """A run of a cell that is being recorded."""

    record: CellRecord
    """What is known of it when it begins."""
    names: CellNames
    """The names of its code."""
    before: dict[str, int]
    """The objects of the notebook's names, by their addresses."""
    files: dict[ListedFiles, None] = field(default_factory=dict)
    """What its actions have read."""
    actions: int = 0
    """How many DataFrames without a name were asked for their files."""
    uses_spark: bool = False
    """Whether an action or a write has run."""


def _never_raises(method: Callable[P, T]) -> Callable[P, T | None]:
    """Let a mistake of ours cost what is recorded of a cell, not the cell."""

    @functools.wraps(method)
    def guarded(*arguments: P.args, **options: P.kwargs) -> T | None:
        try:
            return method(*arguments, **options)
        except Exception:  # noqa: BLE001 - as above
            _LOG.exception("A bug in flinkmagic: %%flinkrun --stale does not know of a cell; please report it.")
            return None

    return guarded


class CellRecorder:
    """Records the runs of a notebook's cells that are captured: what each has read and defined."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._frames = FrameFacts()
        self._values = ValueFacts(lambda df: self._frames.of(df).digest)
        self._rebound: WeakKeyDictionary[FrameRegistry, dict[int, ValueFact]] = WeakKeyDictionary()
        self._open: list[CellRecording] = []
        self.records = CellRecords()

    @_never_raises
    def begin(self, raw: str, number: int, cell: str | None) -> CellRecording | None:
        """Begin a cell; None if it runs inside one that is recorded, as the body of `%%time` does."""
        again = running_again()
        if self._open and (again is None or self._open[-1].record.cell == again.cell):
            return None
        record = again or CellRecord(cell or cell_of_text(raw), number, raw, is_lasting=cell is not None)
        names = self._names(raw)
        reads = {name: self._found(name) for name in sorted(self._read(names))}
        self._frames.rest()
        fresh = CellRecord(record.cell, record.number, raw, record.is_lasting, reads=reads)
        self._open.append(CellRecording(fresh, names, self._addresses()))
        return self._open[-1]

    @_never_raises
    def act(self, recording: CellRecording | None, df: DataFrame) -> None:
        """Record the files of a DataFrame that an action reads."""
        if recording is None:
            return
        recording.uses_spark = True
        if self._frames.knows(df) or recording.actions < MOST_ACTIONS:
            recording.actions += not self._frames.knows(df)
            recording.files.update(dict.fromkeys(self._frames.of(df).files))

    @_never_raises
    def drop(self, recording: CellRecording | None) -> None:
        """End a cell that has left no program, if it has not ended: it has raised."""
        if recording is not None and recording in self._open:
            self._open.remove(recording)
            self.records.note_exception(recording.record.cell)

    @_never_raises
    def end(self, recording: CellRecording | None, program: Program, *, raised: bool = False) -> None:
        """End a cell that has not ended, and add it to the table."""
        if recording is None or recording not in self._open:
            return
        self._open.remove(recording)
        for write in (*program.eager.writes, *program.writes):
            self.act(recording, write.df)
        names = self._shell.user_ns
        defines = self._defined(recording)
        known = {*recording.record.reads, *defines}
        frames = [names[name] for name in known if isinstance(names.get(name), DataFrame)]
        for df in frames:
            recording.files.update(dict.fromkeys(self._frames.of(df).files))
        self._know_frames(program, defines)
        self._frames.rest()
        uses_spark = bool(recording.uses_spark or frames or program.lineage.calls or program.eager.actions)
        self.records.add(
            replace(
                recording.record,
                defines=defines,
                files=tuple(recording.files),
                settings=settings_then(program.session) if uses_spark else {},
                raised=raised,
            )
        )
        for around in self._open:  # what this cell has bound, it has not
            around.before = self._addresses()

    @property
    def current(self) -> CellRecording | None:
        """The innermost cell that is being recorded."""
        return self._open[-1] if self._open else None

    def _defined(self, recording: CellRecording) -> dict[str, ValueFact]:
        """Return the values that a cell has left under the names that it has bound, or whose values it has changed."""
        names, reads, defines = self._shell.user_ns, recording.record.reads, {}
        for name in recording.names.changes & names.keys():
            self._values.change(names[name])
        rebound = {name for name, address in self._addresses().items() if recording.before.get(name) != address}
        for name in sorted(rebound | recording.names.binds | reads.keys()):
            if self._is_users(name):
                fact = self._fact(name)
                if name in rebound | recording.names.binds or not fact.is_same(reads[name].fact):
                    defines[name] = fact
        return defines

    def _know_frames(self, program: Program, defines: Mapping[str, ValueFact]) -> None:
        """Record the facts of a program's DataFrames for those to which a job may bind their names."""
        facts = self._rebound.setdefault(program.lineage.registry, {})
        for name, fact in defines.items():
            value = self._shell.user_ns[name]
            number = program.frame_of(value) if isinstance(value, DataFrame) else None
            if number is not None:
                facts[number] = fact

    def _fact(self, name: str) -> ValueFact:
        """Return what is known of a name's value; a DataFrame over the rows that a job has kept is what it was."""
        value = self._shell.user_ns[name]
        if isinstance(value, DataFrame):
            for registry, facts in self._rebound.items():
                number = registry.number(value)
                if number in facts:
                    return facts[number]
        return self._values.of(value)

    def _addresses(self) -> dict[str, int]:
        return {name: id(value) for name, value in self._shell.user_ns.items()}

    def stale(self, spark: SparkSession | None) -> list[StaleCell]:
        """Return the stale cells, in the order in which they are to run again."""
        if spark is None or not len(self.records):
            return []
        files = FilesNow(spark)
        facts: dict[str, Any] = {}

        def value(name: str) -> Any:
            if name not in facts:
                facts[name] = self._fact(name) if name in self._shell.user_ns else None
            return facts[name]

        found = stale_cells(self.records, Present(value, files.changed, settings_now(spark)))
        self._frames.rest()
        return found

    def _found(self, name: str) -> ReadValue:
        return self.records.found(name, self._fact(name))

    def _names(self, raw: str) -> CellNames:
        """Return the names of a cell as it was typed; none below a magic whose text is no Python."""
        while raw.lstrip().startswith("%%"):
            first, _, raw = raw.lstrip().partition("\n")
            if first[2:].split(maxsplit=1)[0] not in _PYTHON_MAGICS:
                return CellNames()
        try:
            return cell_names(self._shell.transform_cell(raw))
        except SyntaxError:  # which IPython shows
            return CellNames()

    def _read(self, names: CellNames) -> set[str]:
        """Return the names that a cell reads, itself or in functions that it may call."""
        found: set[str] = set()
        open_ = [name for name in names.reads if self._is_users(name)]
        while open_:
            name = open_.pop()
            if name in found:
                continue
            found.add(name)
            open_ += [one for one in self._used_by(self._shell.user_ns[name]) if one not in names.binds]
        return found

    def _used_by(self, value: Any) -> Iterable[str]:
        """Yield the names of the notebook that a function of its own, or a class, looks up."""
        parts = [value, *vars(value).values()] if isinstance(value, type) else [value]
        for part in parts:
            for function in functions_in(getattr(part, "__func__", part)):
                if isinstance(function, types.FunctionType) and function.__globals__ is self._shell.user_ns:
                    yield from filter(self._is_users, names_of_code(function))

    def _is_users(self, name: str) -> bool:
        """Return whether a name is the user's, and bound: not one of IPython's own."""
        hidden = getattr(self._shell, "user_ns_hidden", {})
        if name not in self._shell.user_ns or name in ("_", "__", "___", "_i", "_ii", "_iii", "_ih", "_oh", "_dh"):
            return False
        is_numbered = name.lstrip("_").removeprefix("i").isdecimal() and name.startswith("_")
        return not is_numbered and (name not in hidden or hidden[name] is not self._shell.user_ns[name])
