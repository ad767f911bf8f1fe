"""Fingerprints a Python function as Spark's workers get it: what it does, not where it is defined.

PySpark ships a function as a pickle that cloudpickle made. These bytes say exactly what will run: they hold the
function's instructions, constants, defaults, closure and referenced globals as they were when PySpark pickled them. But
equal functions have unequal bytes: these also hold the file name, the line numbers, and a random id for each class that
a cell defines. So the pickle is read into inert records (`inert_pickle`), whose digest leaves out file names, lines and
such ids. What a function only refers to by its module's name is followed into the module's source (`user_modules`).

If something cannot be followed, such as a module that cannot be read, there is no fingerprint, and what uses the
function cannot be compared. Whether a function does the same on each call is another question: `purity`.

Rejected: loading the pickle and looking at the function (runs what its globals' reducers like, on the driver);
remembering the user's function by the Java object that PySpark makes of it (its globals have changed since).
"""

from __future__ import annotations

import dis
import hashlib
import pickle
import struct
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flinkmagic.functions.code_view import code_and_consts
from flinkmagic.functions.inert_pickle import Record, is_symbol, read_pickle, skeleton_of
from flinkmagic.functions.user_modules import CannotCompareError, ModuleSources, absolute, library_version

_SUBIMPORT, _BROADCAST = "subimport", "_from_id"
_RANDOM_IDS = {"_make_skeleton_class": 4, "_make_skeleton_enum": 5, "_make_typevar": 5}
"""Functions of cloudpickle, and which of their arguments is an id that it made up."""
_PLACES = frozenset({"__file__", "__path__", "__firstlineno__"})


@dataclass(frozen=True)
class CodeFingerprint:
    """What a pickled function does."""

    digest: str
    """Equal for functions that do the same."""
    portable: bool = True
    """Whether it means the same in another process; not if it refers to a broadcast variable."""


def fingerprint(pickled: bytes, sources: ModuleSources | None = None) -> CodeFingerprint:
    """Return the fingerprint of a pickled function, or of any other pickle that cloudpickle made.

    Parameters
    ----------
    sources : ModuleSources, optional
        Looks modules up; pass one when looking at several functions together.

    Raises
    ------
    CannotCompareError
        If the function holds or refers to something that cannot be followed.
    """
    digest = _Digest(sources or ModuleSources())
    try:
        digest.add(list(read_pickle(pickled)))
        return digest.result()
    except RecursionError:
        raise CannotCompareError("it is nested too deeply") from None


class _Digest:
    """Feeds a structure into a hash, each object once, so that cycles end."""

    def __init__(self, sources: ModuleSources) -> None:
        self._hash = hashlib.sha256()
        self._sources = sources
        self._numbers: dict[int, int] = {}
        self._modules: dict[str, str] = {}
        self._portable = True

    def result(self) -> CodeFingerprint:
        for name in sorted(self._modules):
            self._put("module", f"{name}={self._modules[name]}")
        return CodeFingerprint(self._hash.hexdigest(), self._portable)

    def _put(self, kind: str, text: str | bytes = "") -> None:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        self._hash.update(f"{kind}:{len(data)}:".encode() + data)

    def add(self, value: Any) -> None:
        if value is None or isinstance(value, bool | int | str):
            self._put(type(value).__name__, str(value))
        elif isinstance(value, float):
            self._put("float", struct.pack(">d", value))
        elif isinstance(value, complex):
            self._put("complex", struct.pack(">dd", value.real, value.imag))
        elif isinstance(value, bytes):
            self._put("bytes", value)
        elif isinstance(value, tuple):
            self._add_all("tuple", value)
        elif isinstance(value, frozenset):
            self._add_all("frozenset", self._sorted(value))
        elif is_symbol(value):
            self._add_symbol(value.symbol)
        elif isinstance(value, type):
            self.add(skeleton_of(value))
        elif id(value) in self._numbers:
            self._put("again", str(self._numbers[id(value)]))
        else:
            self._numbers[id(value)] = len(self._numbers)
            self._add_object(value)

    def _add_all(self, kind: str, values: Any) -> None:
        self._put(kind, str(len(values)))
        for value in values:
            self.add(value)

    def _sorted(self, values: set[Any] | frozenset[Any]) -> list[Any]:
        """Sort in an order that does not depend on memory addresses or on the process's hash seed."""

        def order(value: Any) -> str:
            alone = _Digest(self._sources)
            alone.add(value)
            return alone.result().digest

        return sorted(values, key=order)

    def _add_object(self, value: Any) -> None:
        if isinstance(value, list):
            self._add_all("list", value)
        elif isinstance(value, dict):
            self._put("dict", str(len(value)))
            for key, held in value.items():
                if key in _PLACES:
                    continue
                self.add(key)
                self.add(held)
        elif isinstance(value, set):
            self._add_all("set", self._sorted(value))
        elif isinstance(value, bytearray | pickle.PickleBuffer):
            self._put("buffer", bytes(value))
        elif isinstance(value, Record):
            self._add_code(value) if value.is_code else self._add_record(value)
        else:
            raise CannotCompareError(f"it holds a {type(value).__name__}")

    def _add_record(self, record: Record) -> None:
        made_of = type(record).skeleton
        if made_of is not None:
            self.add(made_of)
        self._add_symbol(record.symbol)
        name, args = record.symbol[1], list(record.args)
        if name == _SUBIMPORT and args and isinstance(args[0], str):
            self._add_module(args[0])
        if name == _BROADCAST:
            self._portable = False
        if made_of is None and name in _RANDOM_IDS and len(args) > _RANDOM_IDS[name]:
            args[_RANDOM_IDS[name]] = None
        self._put("record")
        self.add(record.callee)
        self._add_all("args", args)
        self._add_all("options", sorted(record.options.items()))
        self._add_all("items", record.items)
        self.add(record.state)

    def _add_symbol(self, symbol: tuple[str, str]) -> None:
        module, name = symbol
        self._put("symbol", f"{module}:{name}")
        self._add_module(module)

    def _add_module(self, name: str) -> None:
        if name == "__main__":
            raise CannotCompareError("it refers to a name of __main__ that was not shipped with it")
        version = library_version(name)
        if version is not None:
            self._modules[name] = version
        else:
            self._modules.update(self._sources.of(name))

    def _add_code(self, record: Record) -> None:
        """Add all of a code object but its file name, first line and line table."""
        code, consts = code_and_consts(record)
        for module in _imported_in(code, consts):
            self._add_module(module)
        numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_nlocals)
        self._add_all("code", (*numbers, code.co_stacksize, code.co_flags, code.co_code))
        self._add_all("names", (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
        self._add_all("name", (code.co_name, getattr(code, "co_exceptiontable", b"")))
        self._add_all("consts", consts)


def _imported_in(code: types.CodeType, consts: tuple[Any, ...]) -> Iterator[str]:
    """Yield what a function imports inside its body; what is taken from a package may be a module."""
    origin, level = "", 0
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_CONST" and isinstance(consts[instruction.arg or 0], int):
            level = consts[instruction.arg or 0]
        elif instruction.opname == "LOAD_SMALL_INT":
            level = instruction.arg or 0
        elif instruction.opname == "IMPORT_NAME":
            if level:
                raise CannotCompareError("its code imports relatively")
            origin = absolute(str(instruction.argval), 0, "")
            yield origin
        elif instruction.opname == "IMPORT_FROM":
            yield f"{origin}.{instruction.argval}"
