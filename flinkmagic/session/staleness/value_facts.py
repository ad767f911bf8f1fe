"""Describes the values of a notebook's names, so that it can be told later whether they are the same.

DataFrames are compared by the key of their query, functions by the fingerprint of their code, the user's modules by
their sources: by the rules that decide whether a kept result may be used (`reuse.result_keys`). Plain values are
compared by their contents, anything else by identity, and by how often cells have set an item or an attribute of it.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, Row

from flinkmagic.capturing.frames import FrameRegistry
from flinkmagic.functions.user_modules import CannotCompareError, ModuleSources, find_module, library_version, stamp_of
from flinkmagic.reuse.code_fingerprint import fingerprint
from flinkmagic.session.staleness.cell_records import ValueFact

_MOST_PARTS = 1000
_MOST_TEXT = 100_000
_DEEPEST = 20
_OF_UDFS = ("returnType", "evalType", "deterministic")
_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), range, datetime.date, datetime.time, datetime.timedelta,
    datetime.datetime, decimal.Decimal,
)  # fmt: skip


_CELLS = ("__main__", None)
"""The `__module__` of what cells define; a notebook may have deleted `__name__`."""


class ValueFacts:
    """Finds the facts of values.

    Parameters
    ----------
    frame_key : callable
        Returns the key of a DataFrame's query; empty if it has none.
    """

    def __init__(self, frame_key: Callable[[DataFrame], str]) -> None:
        self._frame_key = frame_key
        self._numbers = FrameRegistry()
        self._versions: Counter[int] = Counter()
        self._modules: dict[str, tuple[tuple[Any, ...], str]] = {}

    def of(self, value: Any) -> ValueFact:
        """Return the fact of a value."""
        return self._of(value, frozenset())

    def change(self, value: Any) -> None:
        """Note that a cell has changed a value in place."""
        self._versions[self._identity(value)] += 1

    def _of(self, value: Any, within: frozenset[int]) -> ValueFact:
        if isinstance(value, DataFrame):
            return ValueFact("DataFrame", self._identity(value), key=self._frame_key(value))
        if id(value) in within:
            return ValueFact("object", key="itself")
        identity = self._identity(value)
        kind, parts = "object", None
        if isinstance(value, types.ModuleType):
            kind, parts = "module", self._module(value.__name__)
        elif isinstance(value, type) or functions_in(value):
            kind, parts = "function", self._function(value, within | {id(value)})
        elif (text := _text_of(value)) is not None:
            kind, parts = "value", f"{type(value).__qualname__} {text}"
        if parts is None:
            return ValueFact(kind, identity, self._versions[identity])
        return ValueFact(kind, identity, 0, hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest())

    def _identity(self, value: Any) -> int:
        try:
            return self._numbers.add(value)
        except TypeError:  # it allows no weak references
            return -id(value)

    def _function(self, value: Any, within: frozenset[int]) -> str | None:
        """Return a text that describes a function or a class completely; None if there is none."""
        try:
            if getattr(value, "__module__", None) not in _CELLS:
                return f"{value.__module__}.{getattr(value, '__qualname__', '')} {self._module(value.__module__)}"
            if isinstance(value, type):
                return self._class(value, within)
            said = [f"{getattr(value, name, '')}" for name in _OF_UDFS]
            for function in functions_in(value):
                if function.__globals__.get("__name__") not in _CELLS:  # it wraps the next one
                    said.append(f"{function.__code__.co_name} {self._module(function.__globals__['__name__'])}")
                    continue
                said.append(fingerprint(cloudpickle.dumps(function.__code__)).digest)
                held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
                held += [cell.cell_contents for cell in function.__closure__ or ()]
                said += [_said(self._of(one, within)) for one in held if one is not value]
            return str(said)
        except (CannotCompareError, ValueError, TypeError):  # its code cannot be followed, or a closure cell is empty
            return None

    def _class(self, value: type, within: frozenset[int]) -> str:
        left_out = ("__dict__", "__weakref__", "__doc__", "__firstlineno__", "__static_attributes__")
        held = sorted((name, one) for name, one in vars(value).items() if name not in left_out)
        said = [f"{name} {_said(self._of(getattr(one, '__func__', one), within))}" for name, one in held]
        return f"{value.__qualname__} {[base.__qualname__ for base in value.__bases__]} {said}"

    def _module(self, name: str) -> str | None:
        """Return a module's sources as text, read again only if one of their files has changed."""
        version = library_version(name)
        if version is not None:
            return f"{name} {version}"
        known = self._modules.get(name)
        if known is not None and known[0] == tuple(_file_of(one) for one, _ in known[0]):
            return known[1]
        try:
            found = ModuleSources().of(name)
        except CannotCompareError:
            return None
        files = tuple(_file_of(one) for one in sorted(found))
        self._modules[name] = files, str(sorted(found.items()))
        return self._modules[name][1]


def functions_in(value: Any) -> list[types.FunctionType]:
    """Return the Python functions that make up a value: itself, and those that it wraps (`udf`, `functools.wraps`)."""
    found: list[types.FunctionType] = []
    while isinstance(value, types.FunctionType) and value not in found:
        found.append(value)
        value = getattr(value, "func", None) or getattr(value, "__wrapped__", None)
    return found


def names_of_code(function: types.FunctionType) -> Iterator[str]:
    """Yield the names that a function, and the functions defined in it, may look up among the globals."""
    open_ = [function.__code__]
    while open_:
        code = open_.pop()
        yield from code.co_names
        open_ += [one for one in code.co_consts if isinstance(one, types.CodeType)]


def _said(fact: ValueFact) -> str:
    return fact.key or f"{fact.identity}.{fact.version}"


def _file_of(module: str) -> tuple[str, tuple[int, ...] | None]:
    spec = find_module(module)
    return module, None if spec is None or spec.origin is None else stamp_of(spec.origin)


def _text_of(value: Any) -> str | None:
    """Return the contents of a plain value as a text of bounded length; None for any other value."""
    parts: list[str] = []
    left = [_MOST_PARTS, _MOST_TEXT]

    def add(one: Any, depth: int = 0) -> bool:
        left[0] -= 1
        if isinstance(one, (str, bytes)):
            left[1] -= len(one)
        if min(left) < 0 or depth > _DEEPEST:
            return False
        kind = type(one)
        if kind in _PLAIN or isinstance(one, PurePath):
            parts.append(f"{kind.__name__} {one!r}")
            return True
        if kind not in (list, tuple, Row, set, frozenset, dict):
            return False
        parts.append(f"{kind.__name__} {len(one)} {getattr(one, '__fields__', '')}")
        held = [part for item in one.items() for part in item] if kind is dict else list(one)
        if kind in (set, frozenset):  # their order differs between processes
            held = sorted(held, key=repr) if all(type(each) in _PLAIN for each in held) else [one]
        return all(add(each, depth + 1) for each in held)

    return "\n".join(parts) if add(value) else None
