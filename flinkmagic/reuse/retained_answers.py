"""Retains small answers of actions in the driver's memory, to give them again without running anything.

An answer is what an action returned: a number, rows, a pandas frame, a text that was shown. It is retained as a pickle
that this process has made, so that each time it is given it is an object of its own. Only what is surely small and of
types whose copies are equal is retained; that something is large is known without a look at all of it. A larger pandas
frame is retained as well if pandas can copy it: if nobody can change what its columns hold.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import pickle
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import Row

from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.reuse.durable_store import KERNEL
from flinkmagic.reuse.stored_answers import is_frame

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.reuse.durable_store import DurableEntry

LARGEST = 2**20
"""How many bytes of memory an answer may take that is pickled."""

LARGEST_FRAME = 32 * 2**20
"""How many bytes of memory a pandas frame may take that is copied."""

MOST_BYTES = 64 * 2**20
"""How many bytes all pickles may take, and all copied frames: what was used least recently goes first."""

MOST_ANSWERS = 1000
"""How many there may be, however small."""

NAME = "answers"
"""What they are called together, as the results of a graph are called by its name."""

_OWN_BYTES = 1024
"""What an answer takes beside its pickle."""

_PLAIN = frozenset(
    {
        bool,
        bytearray,
        bytes,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        decimal.Decimal,
        float,
        int,
        str,
        type(None),
    }
)

_UNCHANGING = _PLAIN - {bytearray}
"""Types whose values nobody can change: the copies of a frame share them."""


@dataclass(frozen=True)
class PackedAnswer:
    """What is retained of an answer."""

    value: Callable[[], Any] = field(repr=False)
    """Makes the answer, as a new object."""
    bytes: int
    """How much memory it takes."""

    @property
    def is_copied(self) -> bool:
        """Whether it is a frame that was copied; it is a pickle otherwise."""
        return self.bytes > LARGEST


@dataclass(eq=False)
class RetainedAnswer:
    """An answer that was given before."""

    key: str
    """The key of its rows, with the action and its arguments."""
    what: str
    """The call as it was written."""
    packed: PackedAnswer = field(repr=False)
    seconds: float
    """How long it took when it was computed."""
    name: str = ""
    """The name to release it by."""
    made_at: float = field(default_factory=time.time)
    """When it was computed."""
    used_at: float = field(default_factory=time.time)
    """When it was given last."""
    kernel: str = KERNEL
    """The process that computed it."""
    stored_at: Path | None = None
    """The file that holds it for later processes; None if none does."""
    uses: int = 0
    """How often it was given again, in this process."""

    kind = "answer"
    graph = NAME
    for_session = True

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self.packed.bytes + _OWN_BYTES

    @property
    def place(self) -> str:
        """Where it is."""
        return "memory, durable" if self.stored_at is not None else "memory"

    def value(self) -> Any:
        """Return the answer, as a new object."""
        return self.packed.value()


class RetainedAnswers:
    """The answers that are retained for one SparkContext; can be called from any thread."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}
        """What is known of the columns of files, by how they were read; it is released with all answers."""
        self._lock = threading.Lock()
        self._number = 0
        self._retained: dict[str, RetainedAnswer] = {}
        """By key, the least recently used one first."""

    def entries(self) -> list[RetainedAnswer]:
        """Return what is retained, last used first."""
        with self._lock:
            return list(reversed(self._retained.values()))

    def find(self, key: str) -> RetainedAnswer | None:
        """Return the answer with a key, if there is one."""
        with self._lock:
            return self._retained.get(key)

    def use(self, answer: RetainedAnswer) -> None:
        """Note that an answer is given again."""
        with self._lock:
            if self._retained.get(answer.key) is answer:
                answer.used_at = time.time()
                answer.uses += 1
                self._retained[answer.key] = self._retained.pop(answer.key)

    def add(
        self, key: str, what: str, answer: Any, seconds: float, entry: DurableEntry | None = None
    ) -> RetainedAnswer | None:
        """Keep an answer if it is small; what was used least recently makes room for it.

        Parameters
        ----------
        entry : DurableEntry, optional
            What it was read from.
        """
        what_stays = packed(answer)
        if what_stays is None:
            return None
        with self._lock:
            former = self._retained.pop(key, None)
            self._number += former is None
            name = f"{NAME}.{self._number}" if former is None else former.name
            kept = self._retained[key] = RetainedAnswer(key, what, what_stays, seconds, name)
            if entry is not None:
                kept.made_at, kept.kernel = entry.made_at, entry.kernel
            self._make_room(is_copied=what_stays.is_copied)
        return kept

    def _make_room(self, *, is_copied: bool) -> None:
        alike = [one for one in self._retained.values() if one.packed.is_copied == is_copied]
        total = sum(one.bytes for one in alike)
        while total > MOST_BYTES or len(alike) > MOST_ANSWERS:
            total -= self._retained.pop(alike.pop(0).key).bytes

    def drop(self, which: Callable[[RetainedAnswer], bool]) -> list[RetainedAnswer]:
        """Release some answers; return what was released."""
        with self._lock:
            gone = [one for one in self._retained.values() if which(one)]
            for one in gone:
                del self._retained[one.key]
        return gone


def packed(answer: Any) -> PackedAnswer | None:
    """Return what can be retained of an answer; None if it is too large, or is not known to have equal copies."""
    if _is_small(answer):
        pickled = pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)
        if len(pickled) <= LARGEST:
            return PackedAnswer(functools.partial(pickle.loads, pickled), len(pickled))
    size = _bytes_of_frame(answer)
    return PackedAnswer(answer.copy().copy, size) if size is not None else None


def _bytes_of_frame(answer: Any) -> int | None:
    """Return how much memory a frame of more than `LARGEST` bytes takes; None if it is none, or cannot be copied."""
    if not is_frame(answer):
        return None
    objects = [column for _, column in answer.items() if column.dtype == object]
    flat = int(answer.memory_usage(deep=False).sum())
    if flat + sys.getsizeof(None) * sum(map(len, objects)) > LARGEST_FRAME:
        return None
    size = int(answer.memory_usage(deep=True).sum())
    is_known = all(isinstance(dtype, np.dtype) for dtype in answer.dtypes)
    if not LARGEST < size <= LARGEST_FRAME or not is_known:
        return None
    return size if all(_UNCHANGING.issuperset(map(type, column)) for column in objects) else None


def _is_small(answer: Any) -> bool:
    left, to_see = LARGEST, [answer]
    while to_see:
        value = to_see.pop()
        kind = type(value)
        library = kind.__module__.partition(".")[0]
        if library in ("pandas", "pyarrow"):
            left -= _library_bytes(value, left)
        else:
            left -= sys.getsizeof(value)
        if left < 0:
            return False
        if kind in _PLAIN:
            continue
        if kind in (list, tuple, Row):
            to_see += value
        elif kind is dict:
            to_see += [*value.keys(), *value.values()]
        elif library == "numpy":
            if value.dtype.hasobject:
                to_see += value.ravel().tolist()
        elif hasattr(value, "memory_usage"):
            objects = (column for _, column in value.items() if column.dtype == object)
            to_see += [column.to_numpy() for column in objects]
        elif library not in ("pandas", "pyarrow"):
            return False
    return True


def _library_bytes(value: Any, most: int) -> int:
    """Return how many bytes a pandas or pyarrow object takes; it is looked into only if that may be few."""
    if hasattr(value, "memory_usage"):
        flat = int(value.memory_usage(deep=False).sum())
        return flat if flat > most else int(value.memory_usage(deep=True).sum())
    return int(value.nbytes) if hasattr(value, "nbytes") else sys.getsizeof(value)


@kept_for_context
def retained_answers(sc: SparkContext) -> RetainedAnswers:
    """Return the answers that are retained for a SparkContext."""
    return RetainedAnswers()
