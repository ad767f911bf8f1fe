"""Stores rows that a session has kept, and finds those that earlier processes have stored.

1. Rows are found by their durable key (`durable_keys`), in the partitions and the order in which they were kept
   (`row_files`), with the columns of this process's plan. Each file is checked before they are used: if one is not as
   it was written, the entry is removed, a line says so, and the rows are computed.
2. Rows are stored when no job of the context has run for a while, a few partitions at a time, on half of the cores. A
   job that starts meanwhile ends the job that stores: those partitions are stored later.
3. Rows are stored if computing them took longer than storing and reading them takes (`LEAST_A_SECOND`), and if there is
   room for them among what saves more per byte.
4. With the rows a note is stored that is found by the query of the DataFrame, as it is analysed: so the first action of
   another process that reads the DataFrame asks for them. Its plan may be another one than that of the process that
   stored them, which had kept other DataFrames by then, and so may its key: the rows are taken by the note if they lie
   in partitions, and in the order, as the plan says.
5. Only a context whose tasks run on this machine has durable rows: others might write to another disk. The rows of a
   job that is not over (`checkpoints`) may lie in a folder that all machines share; they are written while it runs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from flinkmagic.errors.durable import (
    OTHER_COLUMNS,
    OTHER_LAYOUT,
    OTHER_PARTITIONS,
    WRONG_DESCRIPTION,
    DamagedError,
    wrong_file,
)
from flinkmagic.jvm.block_storage import stored_bytes
from flinkmagic.jvm.contexts import jvm_context, kept_for_context
from flinkmagic.jvm.java import execution_of
from flinkmagic.reuse.durable_keys import durable_keys
from flinkmagic.reuse.durable_store import WRITE_S, DurableEntry, DurableStore
from flinkmagic.reuse.java_classes import CLASSES
from flinkmagic.reuse.job_rows import Kept, KeptRows
from flinkmagic.reuse.result_keys import ResultKey, ResultKeys
from flinkmagic.reuse.retained_results import RetainedResult, retained_results
from flinkmagic.reuse.row_files import NotStorableError, RowFiles, row_files, stored_schema

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from flinkmagic.planning.stage_results import StageResult

_LOG = logging.getLogger(__name__)

LEAST_A_SECOND = 20 * 2**20
"""How many bytes of kept rows are stored, checked, read and kept again in a second, at least, by one core."""

READ_S = 1.0
"""What the first stored rows that a kernel reads take, however few: its JVM has not read a file of that kind before."""

QUIET_S = 0.5
"""How long no job must have run before rows are stored."""

_PATIENCE_S = 1800.0
"""How long rows wait for that; less than what makes a folder one that was left behind."""

_MOST_TRIES = 8
"""So many times in a row a job that stores may be ended by others, before its rows are not stored."""

_STORED = "stored rows"
"""What notes are asked for, beside a DataFrame's query."""

_TAG = "flinkmagic-durable"
_PART = re.compile(r"part-(\d+)-.*\.parquet")
_BLOCK = 2**20


@dataclass(frozen=True)
class _File:
    """The rows of one partition."""

    partition: int
    bytes: int
    checksum: str

    @property
    def name(self) -> str:
        return f"{self.partition:05d}.parquet"


@dataclass(frozen=True)
class _StoredRows:
    """What an entry says of its rows."""

    schema: str
    partitions: int
    kept_bytes: int
    """How many bytes they had where Spark kept them."""
    layout: str
    """How they lie in partitions, and in which order (`ResultKeys.layout_of`)."""
    files: tuple[_File, ...]

    @classmethod
    def of(cls, entry: DurableEntry) -> _StoredRows:
        try:
            told = json.loads(entry.content)
            files = tuple(_File(int(place), int(size), str(checksum)) for place, size, checksum in told["files"])
            made = cls(
                str(told["schema"]), int(told["partitions"]), int(told["kept_bytes"]), str(told["layout"]), files
            )
        except (LookupError, RecursionError, TypeError, ValueError) as error:
            raise DamagedError(WRONG_DESCRIPTION) from error
        places = {file.partition for file in files}
        if len(places) < len(files) or not places <= set(range(made.partitions)) or not entry.folder:
            raise DamagedError(WRONG_DESCRIPTION)
        return made

    def content(self) -> bytes:
        files = [[file.partition, file.bytes, file.checksum] for file in self.files]
        return json.dumps({**vars(self), "files": files}).encode()


class _OtherLayoutError(DamagedError):
    """The rows are not those of the plan that asks for them: damaged, if they have its key."""


@dataclass(frozen=True)
class _Note:
    """What an entry says of a DataFrame (rule 4)."""

    columns: frozenset[int]
    """The positions of those that are stored."""
    rows: str
    """The key of the rows."""

    @classmethod
    def of(cls, entry: DurableEntry) -> _Note:
        try:
            told = json.loads(entry.content)
            return cls(frozenset(map(int, told["columns"])), str(told["rows"]))
        except (LookupError, RecursionError, TypeError, ValueError) as error:
            raise DamagedError(WRONG_DESCRIPTION) from error

    def content(self) -> bytes:
        return json.dumps({"columns": sorted(self.columns), "rows": self.rows}).encode()


@dataclass(frozen=True)
class _Rows:
    """Rows that are to be written."""

    files: RowFiles
    rows: Any
    kept: KeptRows
    schema: str
    partitions: int
    what: str

    def write(self, folder: Path, first: int, number: int) -> list[_File]:
        """Write some neighbouring partitions to a folder, by one job."""
        part = folder / f"from-{first}"
        self.files.write(self.files.some(self.rows, first, number), self.schema, f"file:{part}")
        moved = []
        for path in sorted(part.iterdir()):
            name = _PART.fullmatch(path.name)
            if name is not None:
                partition = first + int(name[1])
                file = _File(partition, path.stat().st_size, _checksum(path))
                path.rename(folder / file.name)
                moved.append(file)
            else:
                path.unlink()
        part.rmdir()
        return moved


class _CacheRows(KeptRows):
    """Rows of a cache of the user's, who may drop them: they are loaded as long as Spark holds these very ones."""

    def __init__(self, sc: SparkContext, builder: JavaObject) -> None:
        super().__init__(builder, lambda: None)
        self._sc, self._number = sc, int(builder.cachedColumnBuffers().id())

    def bytes(self) -> int:
        """Return how many bytes Spark holds of them."""
        return stored_bytes(self._sc, self._number)

    def are_loaded(self) -> bool:
        return self.bytes() > 0


_Found = TypeVar("_Found")

_Own = Callable[[Path], Path]

_Write = Callable[[_Rows, Path], "list[_File] | None"]
"""Writes rows to a folder; returns None if that was not possible in time."""


class DurableRows:
    """The durable rows of one SparkContext in one folder; made by `durable_rows`."""

    def __init__(self, sc: SparkContext, store: DurableStore) -> None:
        self._sc, self._store = sc, store
        self._jobs: dict[str, Any] = {}
        self._with_notes: WeakSet[DataFrame] = WeakSet()

    # -- reading ---------------------------------------------------------------------------------------

    def has(self, key: ResultKey, dataframes: Iterable[DataFrame], columns: frozenset[int]) -> bool:
        """Return whether rows with this key are stored, or rows with these columns of one of the DataFrames."""
        stored_as = durable_keys(self._sc).of(key)
        is_there = stored_as is not None and self._store.path(stored_as).exists()
        return is_there or self._noted(dataframes, columns) is not None

    def find(self, result: StageResult, key: ResultKey, graph: str, *, for_session: bool) -> RetainedResult | None:
        """Return the rows of a boundary if they are stored; they are retained from now on as if a graph kept them."""
        stored_as = durable_keys(self._sc).of(key)
        read = self.read(stored_as, result) if stored_as is not None else None
        if read is None:
            noted = self._noted(result.dataframes, result.columns)
            read = self.read(noted, result, by_note=True) if noted is not None else None
        if read is None:
            self._with_notes -= set(result.dataframes)  # what would be kept for nothing is not planned again
            return None
        entry, kept, size = read
        found = RetainedResult(
            key.digest, result.kind, graph, entry.what, for_session, Kept(None, kept), size,
            is_there=kept.are_there, let_go=kept.let_go, seconds=entry.seconds, made_at=entry.made_at,
            kernel=entry.kernel, durable_key=entry.key, stored_at=self._store.path(entry.key), is_from_store=True,
        )  # fmt: skip
        retained_results(self._sc).add(found)
        return found

    def read(
        self, stored_as: str, result: StageResult, *, by_note: bool = False
    ) -> tuple[DurableEntry, KeptRows, int] | None:
        """Return an entry, its rows as those of a boundary, and how many bytes they had; None if there are none.

        Parameters
        ----------
        by_note : bool
            Whether the entry is of another plan of the same query, whose rows may lie otherwise.
        """
        session, over = result.handle.session, result.over
        entry = self._store.find(stored_as) if over is not None and session is not None else None
        if entry is None:
            return None

        def opened() -> tuple[_StoredRows, JavaObject]:
            assert entry is not None
            assert over is not None
            rows, stored = self._opened(entry, result.plan.schema().json(), session, self._store.files_of(entry))
            builder = over(stored)
            if builder is None:
                raise _OtherLayoutError(OTHER_PARTITIONS)
            if by_note and (not rows.layout or self._layout(builder) != rows.layout):
                raise _OtherLayoutError(OTHER_LAYOUT)
            return rows, builder

        found = self._tried(entry, opened, by_note=by_note)
        if found is None:
            return None
        rows, builder = found
        kept = KeptRows(builder, partial(builder.clearCache, False), partial(self._are_there, entry, rows.files))
        return entry, kept, rows.kept_bytes

    def fill(
        self, stored_as: str, schema_json: str, session: JavaObject, own: _Own, over: Callable[[JavaObject], bool]
    ) -> DurableEntry | None:
        """Let a cache of the user's be filled from an entry; return that, or None if there is none.

        Parameters
        ----------
        own : callable
            Returns a folder with the files of another one, which lasts as long as the cache may.
        over : callable
            Lets the cache read an RDD of rows; returns False if it has other partitions.
        """
        entry = self._store.find(stored_as)
        if entry is None:
            return None

        def opened() -> DurableEntry:
            assert entry is not None
            _, stored = self._opened(entry, schema_json, session, own(self._store.files_of(entry)))
            if not over(stored.all()):
                raise _OtherLayoutError(OTHER_PARTITIONS)
            return entry

        return self._tried(entry, opened)

    def _opened(
        self, entry: DurableEntry, schema_json: str, session: JavaObject, folder: Path
    ) -> tuple[_StoredRows, JavaObject]:
        """Return what an entry says of its rows, and the rows (``RowFiles.Stored``), whose files in a folder are whole.

        Raises
        ------
        DamagedError
            If they are not, or if the rows have other columns.
        NotStorableError, Py4JError, PySparkException
            If they cannot be read.
        """
        schema, rows = stored_schema(schema_json), _StoredRows.of(entry)
        if rows.schema != schema:
            raise _OtherLayoutError(OTHER_COLUMNS)
        self._store.mark_used(entry)
        self._check(folder, rows.files)
        paths = [f"file:{folder / file.name}" for file in rows.files]
        return rows, row_files(self._sc, session).read(paths, schema, rows.partitions)

    def _tried(self, entry: DurableEntry, read: Callable[[], _Found], *, by_note: bool = False) -> _Found | None:
        """Return what a function makes of an entry; None if that cannot be used, which is then told, or removed."""
        try:
            return read()
        except DamagedError as error:
            if by_note and isinstance(error, _OtherLayoutError):
                _LOG.debug("the stored rows of %r are those of another plan: %s", entry.what, error)
            else:
                self._store.drop_damaged(entry.key, error)
        except (NotStorableError, OSError, Py4JError, PySparkException) as error:
            _LOG.warning("The stored rows of %r are not read: %s", entry.what, error)
        return None

    def _layout(self, builder: JavaObject) -> str:
        return ResultKeys(self._sc).layout_of(builder.cachedPlan())

    def drop_if_damaged(self, result: RetainedResult) -> None:
        """Remove rows that were found, and are no longer as they were written, after what has read them has failed."""
        if not result.is_from_store or result.computed.rows.are_loaded():
            return
        entry = self._store.find(result.durable_key)
        try:
            if entry is not None:
                self._check(self._store.files_of(entry), _StoredRows.of(entry).files)
                return
        except DamagedError as error:
            self._store.drop_damaged(result.durable_key, error)
        retained_results(self._sc).drop(lambda one: one is result)

    def _check(self, folder: Path, files: Sequence[_File]) -> None:
        """Raise `DamagedError` unless all files of an entry, in a folder, are as they were written."""
        with ThreadPoolExecutor(4) as pool:
            for file, found in zip(files, pool.map(lambda file: _checksum(folder / file.name), files), strict=True):
                if found != file.checksum:
                    raise DamagedError(wrong_file(file.name, is_there=bool(found)))

    def _is_whole(self, entry: DurableEntry) -> bool:
        try:
            return self._are_there(entry, _StoredRows.of(entry).files)
        except DamagedError:
            return False

    def _are_there(self, entry: DurableEntry, files: Sequence[_File]) -> bool:
        folder = self._store.files_of(entry)
        return all(_size(folder / file.name) == file.bytes for file in files)

    def rehearse(self, session: JavaObject, description: str) -> None:
        """Read some rows, if any are stored, so that Spark has loaded what reading takes.

        It takes a small job, which gives way to others: what it has loaded by then need not be loaded again.

        Parameters
        ----------
        description : str
            What Spark's UI says of the job.

        Raises
        ------
        Py4JError, PySparkException
            If Spark cannot read them, or another job has begun.
        """
        key = self._store.key_with_files()
        entry = self._store.find(key) if key is not None else None
        if entry is None:
            return
        stored = _StoredRows.of(entry)
        file = min(stored.files, key=lambda file: file.bytes, default=None)
        jobs = self._background_jobs("flinkmagic-rehearsal")  # apart from those that store: each ends for the other
        if file is None or not jobs.awaitQuiet(0, 0):
            return
        jobs.begin(description)
        try:
            files = row_files(self._sc, session)
            path = f"file:{self._store.files_of(entry) / file.name}"
            rows = files.read([path], stored.schema, stored.partitions).all()
            files.rehearse(files.some(rows, file.partition, 1), stored.schema)
        finally:
            jobs.end()

    # -- writing ---------------------------------------------------------------------------------------

    def store_later(self, result: RetainedResult) -> None:
        """Store the rows of a boundary when there is time, if that is worth it."""
        if not result.durable_key or result.seconds <= self._cost(result.bytes):
            return
        entry = self._store.find(result.durable_key)
        if entry is not None and self._is_whole(entry):  # another process was faster
            self._note_stored(result)
            return
        new = DurableEntry(result.durable_key, result.what, result.seconds, result.made_at, b"", kernel=result.kernel)
        make = partial(self._stored, new, result.computed, result.bytes)
        self._store.store_later(make, result.seconds, partial(self._note_stored, result), may_wait=True)

    def store_cache(self, entry: DurableEntry, relation: JavaObject) -> None:
        """Store the rows of a cache of the user's, which is filled, when there is time, if that is worth it."""
        builder = relation.cacheBuilder()
        rows = _CacheRows(self._sc, builder)
        size, known = rows.bytes(), self._store.find(entry.key)
        if entry.seconds <= self._cost(size) or (known is not None and self._is_whole(known)):
            return
        # Later, the user may have dropped them: a plan that is made then would cache them again.
        planned = row_files(self._sc, builder.cachedPlan().session()).rows(relation)
        make = partial(self._stored, entry, Kept(relation, rows), size, planned)
        self._store.store_later(make, entry.seconds, may_wait=True)

    def _cost(self, size: int) -> float:
        """Return the seconds that it takes to store rows, and to read them, at most."""
        return WRITE_S + READ_S + size / (LEAST_A_SECOND * max(1, self._sc.defaultParallelism // 2))

    def _note_stored(self, result: RetainedResult) -> None:
        result.stored_at = self._store.path(result.durable_key)

    def _stored(
        self, entry: DurableEntry, kept: Kept, size: int, planned: JavaObject | None = None
    ) -> DurableEntry | None:
        """Write rows, unless they are gone; called on the storing thread."""
        if not kept.rows.hold():
            return None
        try:
            if not kept.rows.are_loaded() or not self._store.has_room(entry.key, size, entry.seconds):
                return None
            return self._with_rows(entry, kept, size, self._write_in_time, planned)
        except NotStorableError as reason:
            _LOG.debug("the rows of %s are not stored: %s", entry.what, reason)
            return None
        except (Py4JError, OSError):
            if self._is_over():
                return None
            raise
        finally:
            kept.rows.let_go()

    def _is_over(self) -> bool:
        return self._sc._jsc is None

    def write(self, entry: DurableEntry, kept: Kept) -> None:
        """Store rows now, by a job of the calling thread, with what an entry says of them.

        Raises
        ------
        NotStorableError, OSError, Py4JError, PySparkException
            If they cannot be written.
        """
        size = stored_bytes(self._sc, kept.rows.builder.cachedColumnBuffers().id())
        written = self._with_rows(entry, kept, size, _write_now)
        assert written is not None
        self._store.store(written)

    def _with_rows(
        self, entry: DurableEntry, kept: Kept, size: int, write: _Write, planned: JavaObject | None = None
    ) -> DurableEntry | None:
        """Write rows, and return the entry that finds them; None if they could not be written in time."""
        assert kept.plan is not None
        schema = stored_schema(kept.plan.schema().json())
        files = row_files(self._sc, kept.plan.cacheBuilder().cachedPlan().session())
        folder = self._store.begin_files()
        try:
            rows = planned or files.rows(kept.plan)
            stored = write(_Rows(files, rows, kept.rows, schema, int(rows.getNumPartitions()), entry.what), folder)
            if stored is None:
                self._store.drop_files(folder.name)
                return None
            layout = self._layout(kept.plan.cacheBuilder())
            content = _StoredRows(schema, int(rows.getNumPartitions()), size, layout, tuple(stored)).content()
            name = self._store.end_files(folder, entry.key)
        except BaseException:
            self._store.drop_files(folder.name)
            raise
        return replace(entry, content=content, folder=name, folder_bytes=sum(file.bytes for file in stored))

    def _write_in_time(self, rows: _Rows, folder: Path) -> list[_File] | None:
        """Write all partitions, some at a time, while no other job runs (rule 2).

        None if others always do, or if the rows were dropped meanwhile: the user may do that with those of a cache.
        """
        stored: list[_File] = []
        jobs, at_a_time = self._background_jobs(_TAG), max(1, self._sc.defaultParallelism // 2)
        first = tries = 0
        while first < rows.partitions:
            if tries == _MOST_TRIES or not jobs.awaitQuiet(int(1000 * QUIET_S), int(1000 * _PATIENCE_S)):
                return None
            if not rows.kept.are_loaded():
                return None
            jobs.begin(f"stores rows of {rows.what} for later kernels")
            try:
                written = rows.write(folder, first, min(at_a_time, rows.partitions - first))
            except (Py4JError, PySparkException):
                if not jobs.end():
                    raise
                tries += 1
                continue
            jobs.end()
            stored += written
            first, tries = first + at_a_time, 0
        return stored

    def _background_jobs(self, tag: str) -> Any:
        jobs = self._jobs.get(tag)
        if jobs is None:
            jobs = self._jobs[tag] = CLASSES.new_instance(self._sc._gateway, "BackgroundJobs", tag)
            jobs.follow(jvm_context(self._sc))
        return jobs

    # -- which DataFrames have rows --------------------------------------------------------------------

    @property
    def are_any(self) -> bool:
        """Whether rows of any DataFrame are stored."""
        return self._store.key_with_files() is not None

    def note_later(self, df: DataFrame, columns: frozenset[int], result: RetainedResult) -> None:
        """Let later processes know which columns of a DataFrame are stored, once they are (rule 4)."""
        noted_as = self._noted_as(df)
        if noted_as is None or not result.durable_key:
            return
        content = _Note(columns, result.durable_key).content()

        def make() -> DurableEntry | None:
            if result.stored_at is None:
                return None
            return DurableEntry(noted_as, result.what, result.seconds, result.made_at, content, result.kernel)

        self._store.store_later(make, result.seconds, may_wait=True)

    def columns_of(self, df: DataFrame) -> frozenset[int] | None:
        """Return the positions of the columns of a DataFrame that are stored; None if no rows of it are."""
        note = self._note_on(df)
        if note is not None:
            self._with_notes.add(df)
        return note.columns if note is not None else None

    def _noted(self, dataframes: Iterable[DataFrame], columns: frozenset[int]) -> str | None:
        """Return the key of rows that have these columns of a DataFrame of which `columns_of` told."""
        for df in dataframes:
            note = self._note_on(df) if df in self._with_notes else None
            if note is not None and note.columns >= columns:
                return note.rows
        return None

    def _note_on(self, df: DataFrame) -> _Note | None:
        noted_as = self._noted_as(df)
        entry = self._store.find(noted_as) if noted_as is not None else None
        if entry is None:
            return None
        try:
            note = _Note.of(entry)
        except DamagedError as error:
            self._store.drop_damaged(entry.key, error)
            return None
        if not self._store.path(note.rows).exists():
            self._store.drop(entry.key)
            return None
        return note

    def _noted_as(self, df: DataFrame) -> str | None:
        """Return the key of the note on a DataFrame; None if its query has none."""
        query = ResultKeys(self._sc).of_answer(execution_of(df), _STORED)
        if not isinstance(query, ResultKey) or query.fills_cache:
            return None
        return durable_keys(self._sc).of(query)


def _write_now(rows: _Rows, folder: Path) -> list[_File]:
    return rows.write(folder, 0, rows.partitions)


def _checksum(path: Path) -> str:
    """Return the SHA-256 of a plain file; empty if it is none, or cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


@kept_for_context
def _known(sc: SparkContext) -> dict[DurableStore, DurableRows]:
    return {}


def durable_rows(sc: SparkContext, store: DurableStore | None) -> DurableRows | None:
    """Return the durable rows of a SparkContext in a store, if there is one; None if it has none (rule 5)."""
    if store is None or not str(sc.master).startswith("local"):
        return None
    return _known(sc).setdefault(store, DurableRows(sc, store))
