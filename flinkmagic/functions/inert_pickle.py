"""Reads a function that cloudpickle pickled into inert records, **without running any of it**.

No class is looked up and no function is called: each is a name with its arguments.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from flinkmagic.functions.user_modules import CannotCompareError

_BUILTIN_TYPE = "_builtin_type"
SKELETONS = frozenset({"_make_skeleton_class", "_make_skeleton_enum"})
"""What cloudpickle makes classes by."""


class Record:
    """What a class or function of the pickle would have made of its arguments; for a class, its name in the pickle."""

    symbol = ("", "")
    """The module and the name under which the pickle refers to the class or function."""
    skeleton: Record | None = None
    """For a class that the pickle includes (such as a cell's) and its instances: what cloudpickle makes it from."""
    made: list[Record]
    state: Any = None

    def __new__(cls, *args: Any, **options: Any) -> Record:
        record = object.__new__(cls)
        record.args, record.options = args, options
        record.items, record.callee = [], None
        cls.made.append(record)
        if cls.symbol[1] in SKELETONS and cls.skeleton is None:
            # A class that the pickle includes. Instances are made only of what is a class here, too.
            return type("Skeleton", (Record,), {"symbol": cls.symbol, "skeleton": record, "made": cls.made})  # type: ignore[return-value]
        return record

    args: tuple[Any, ...]
    options: dict[str, Any]
    items: list[Any]
    """What was added to it, as to a list or dict."""
    callee: Record | None
    """For what another record called, instead of a name: that record."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Ignore the arguments: they were taken when it was made."""

    def __call__(self, *args: Any, **options: Any) -> Record:
        called = type(self)(*args, **options)
        called.callee = self
        return called

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items.append((key, value))

    def append(self, item: Any) -> None:
        self.items.append(item)

    add = append

    @property
    def is_code(self) -> bool:
        """Whether it is a code object."""
        callee = self.callee
        return callee is not None and callee.symbol[1] == _BUILTIN_TYPE and callee.args == ("CodeType",)


def is_symbol(value: Any) -> bool:
    """Return whether it is merely a reference to a class or function, by name."""
    return isinstance(value, type) and issubclass(value, Record) and value.skeleton is None


def skeleton_of(value: Any) -> Record | None:
    """Return what a class that the pickle includes is made from; None for anything else."""
    return value.skeleton if isinstance(value, type) and issubclass(value, Record) else None


class _InertUnpickler(pickle.Unpickler):
    def __init__(self, pickled: bytes) -> None:
        super().__init__(io.BytesIO(pickled))
        self.made: list[Record] = []
        self._symbols: dict[tuple[str, str], type[Record]] = {}

    def find_class(self, module: str, name: str) -> type[Record]:
        symbol = (module, name)
        if symbol not in self._symbols:
            self._symbols[symbol] = type(name, (Record,), {"symbol": symbol, "made": self.made})
        return self._symbols[symbol]

    def persistent_load(self, pid: Any) -> Any:
        raise CannotCompareError("its pickle refers to something outside it")


def read_pickle(pickled: bytes) -> tuple[Any, list[Record]]:
    """Return what was pickled, and all records that were made on the way.

    What is done to an object after it was made (setting a function's state, for example) is a call whose value is held
    nowhere: it is found only among the latter.

    Raises
    ------
    CannotCompareError
        If it is no pickle, or one that cannot be read in this way.
    """
    unpickler = _InertUnpickler(pickled)
    try:
        return unpickler.load(), unpickler.made
    except (pickle.UnpicklingError, AttributeError, EOFError, IndexError, TypeError, ValueError) as error:
        raise CannotCompareError(f"its pickle cannot be read: {error}") from error
    except RecursionError:
        raise CannotCompareError("it is nested too deeply") from None
