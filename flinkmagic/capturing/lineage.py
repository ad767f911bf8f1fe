"""Records the DataFrames of a program: the calls that made them, what was asked of them, what was done with them."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.driver.capture_reader import output_ids
from flinkmagic.capturing.frames import FrameRegistry
from flinkmagic.capturing.writes.targets import temp_views_of
from flinkmagic.jvm.java import execution_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.source_code.source_location import SourceLocation


@dataclass(frozen=True)
class RecordedCall:
    """One call of the user's that made a DataFrame."""

    index: int
    """Position in the program."""
    method: str
    """For example ``where``, ``agg``, ``parquet``."""
    text: str
    """The call as it was written, shortened: ``groupBy("hour").agg(F.avg("dep_delay"))``."""
    location: SourceLocation
    inputs: tuple[int, ...]
    """Frame numbers of the DataFrames that it was called on and with (keys of `Lineage.frames`)."""
    output: int
    """Frame number of the DataFrame that it made."""
    output_expr_ids: tuple[int, ...]
    """Expression ids of those output attributes that appeared with this call first: the key by which an operator of the
    physical plan is given back to the call that asked for it."""


@dataclass(frozen=True, kw_only=True)
class OperatorOptions:
    """What was asked of one DataFrame's operators; None means not asked for. See `with_options`."""

    name: str | None = None
    uid: str | None = None
    slot_sharing_group: str | None = None
    co_location_group: str | None = None
    chaining: str | None = None
    max_parallelism: int | None = None
    location: SourceLocation | None = None

    def over(self, earlier: OperatorOptions | None) -> OperatorOptions:
        """Return these options, completed by the earlier ones."""
        if earlier is None:
            return self
        asked = {name: value for name, value in vars(self).items() if value is not None}
        return replace(earlier, **asked)


@dataclass(frozen=True)
class Selected:
    """Some of the rows of a DataFrame."""

    names: tuple[str, ...] = ()
    """Of a split: the names that were selected."""
    tag: str | None = None
    """The side output that they go to. Without names and a tag they are the main output."""

    @classmethod
    def from_text(cls, text: str) -> Selected:
        """Return what `to_text` has made a text of."""
        names, tag = json.loads(text)
        return cls(tuple(names), tag)

    def to_text(self) -> str:
        """Return it as a text, for the columns of a plan to carry."""
        return json.dumps([self.names, self.tag])


@dataclass(frozen=True)
class Selection:
    """A DataFrame that has some of the rows of another, its parent."""

    parent: int
    """The parent's frame number."""
    selected: Selected


@dataclass(eq=False)
class Lineage:
    """The DataFrames of a program, by their frame numbers, and the calls that made them."""

    registry: FrameRegistry = field(default_factory=FrameRegistry, repr=False)
    """Gives the numbers."""
    calls: tuple[RecordedCall, ...] = ()
    """In the order in which they returned."""
    frames: dict[int, DataFrame] = field(default_factory=dict)
    """The DataFrames that writes, names or several calls refer to; the others were released."""
    used: frozenset[int] = frozenset()
    """The DataFrames whose rows the program has read, or that it has handed on: shown, counted, cached, registered as a
    view, written, given to a function. What it continues from is in `calls`."""
    marks: dict[int, OperatorOptions] = field(default_factory=dict)
    """What `with_options` asked for."""
    selections: dict[int, Selection] = field(default_factory=dict)
    """Which rows of which DataFrame a frame has: the parent is computed once for all of its selections."""
    local_rdds: frozenset[int] = frozenset()
    """The ids of the RDDs that `createDataFrame` made of rows of this process, here or in an earlier program."""

    def by_output(self) -> dict[int, RecordedCall]:
        """Return the call that made each frame."""
        return {call.output: call for call in self.calls}

    def by_expr_id(self) -> dict[int, RecordedCall]:
        """Return the first call that produced each expression id."""
        return {expr_id: call for call in reversed(self.calls) for expr_id in call.output_expr_ids}

    def ancestors(self, frames: Iterable[int]) -> set[int]:
        """Return the frames that these were made from, directly or through others."""
        makers = self.by_output()
        found: set[int] = set()
        waiting = list(frames)
        while waiting:
            maker = makers.get(waiting.pop())
            new = set(maker.inputs) - found if maker is not None else set()
            found.update(new)
            waiting += new
        return found


class CallRecorder:
    """Notes a cell's calls on DataFrames: the lineage of its program so far. The cell's threads may call it.

    Parameters
    ----------
    registry : FrameRegistry
        Of the program.
    earlier : iterable of Lineage
        Of the programs that the cell may continue from.
    """

    def __init__(self, registry: FrameRegistry, earlier: Iterable[Lineage]) -> None:
        self._registry, self._earlier = registry, tuple(earlier)
        self._lock = threading.RLock()
        """Held while anything below changes."""
        self._calls: list[RecordedCall] = []
        self._seen_ids: set[int] = set()
        """The expression ids that a call has produced, or that a DataFrame had that came from outside."""
        self._used: set[int] = set()
        self._marks: dict[int, OperatorOptions] = {}
        self._selections: dict[int, Selection] = {}
        self._local_rdds = {number for lineage in self._earlier for number in lineage.local_rdds}
        self._views: dict[str, DataFrame] = {}
        """What the cell has registered as temporary views, by names in lower case."""
        self.actions = 0
        """How many have run."""
        self.grouped_text: MutableMapping[Any, str] = weakref.WeakKeyDictionary()
        """The text of the call that made a grouping, for the call that aggregates it."""

    def record(
        self, method: str, text: str, location: SourceLocation, inputs: Iterable[DataFrame], output: DataFrame
    ) -> None:
        """Note that a call made a DataFrame."""
        with self._lock:
            inputs = tuple(inputs)
            for df in inputs:
                if self._registry.number(df) is None:
                    self._seen_ids.update(output_ids(execution_of(df)))
            numbers = tuple(dict.fromkeys(map(self._registry.use, inputs)))
            new = tuple(i for i in output_ids(execution_of(output)) if i not in self._seen_ids)
            self._append(method, text, location, numbers, self._registry.add(output), new)

    def _append(
        self,
        method: str,
        text: str,
        location: SourceLocation,
        inputs: tuple[int, ...],
        output: int,
        ids: tuple[int, ...],
    ) -> None:
        self._seen_ids.update(ids)
        self._calls.append(RecordedCall(len(self._calls), method, text, location, inputs, output, ids))

    def use(self, frames: Iterable[DataFrame]) -> None:
        """Note that rows of frames are read, or that other code is given them: none of them is a result then."""
        with self._lock:
            self._used.update(map(self._registry.add, frames))

    def ran(self) -> None:
        """Note that an action has run."""
        with self._lock:
            self.actions += 1

    def mark(self, df: DataFrame, options: OperatorOptions) -> None:
        """Note the options for the operators of a frame; a frame that was made before is known from here on."""
        with self._lock:
            number = self._registry.number(df)
            is_made = number is not None and any(call.output == number for call in self._calls)
            if not is_made and all(lineage.registry.number(df) is None for lineage in self._earlier):
                location = options.location
                assert location is not None
                ids = output_ids(execution_of(df))
                self._append("with_options", location.code, location, (), self._registry.add(df), ids)
            number = self._registry.add(df)
            self._marks[number] = options.over(self._marks.get(number))

    def select(self, parent: DataFrame, df: DataFrame, selected: Selected) -> None:
        """Note that a frame has some rows of another."""
        with self._lock:
            self._selections[self._registry.keep(df)] = Selection(self._registry.keep(parent), selected)

    def local_rows(self, rdd: int) -> None:
        """Note the id of an RDD of rows of this process."""
        with self._lock:
            self._local_rdds.add(rdd)

    def view(self, name: str, df: DataFrame) -> None:
        """Note that a temporary view represents a frame in later queries."""
        self.use([df])
        with self._lock:
            self._views[name.lower()] = df

    def viewed(self, frames: Iterable[DataFrame]) -> list[DataFrame]:
        """Return the frames that these read through temporary views."""
        if not self._views:
            return []
        names = {name for df in frames for name in temp_views_of(execution_of(df).analyzed())}
        with self._lock:
            return [df for name, df in self._views.items() if name in names]

    def lineage(self) -> Lineage:
        """Return what has been noted until now."""
        with self._lock:
            return Lineage(
                self._registry,
                tuple(self._calls),
                dict(self._registry.kept),
                frozenset(self._used),
                dict(self._marks),
                dict(self._selections),
                frozenset(self._local_rdds),
            )
