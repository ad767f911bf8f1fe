"""A fingerprint of a Python function as Spark's workers get it: what it does, not where it stands.

PySpark ships a function as a pickle that cloudpickle made. These bytes are the truth of what will run: they hold the
function's instructions, constants, defaults, closure and referenced globals as they were when PySpark pickled them. But
equal functions have unequal bytes, for the name of the file and the lines are in them, and a random id for each class
that a cell defines. So the pickle is read into inert records, **without running any of it**: no class is looked up and
no function called, each is a name with its arguments. Of the records a digest is made that leaves out file names, lines
and such ids. What a function only refers to by the name of its module is followed into the module's source
(`user_modules`).

Where something cannot be followed, there is no fingerprint, and what uses the function is not comparable: code that
names chance, clocks or the outside world (`user_modules.is_changing`), modules that cannot be read.

Rejected: loading the pickle and looking at the function (runs what its globals' reducers like, on the driver);
remembering the user's function by the Java object that PySpark makes of it (its globals have changed since).
"""

from __future__ import annotations

import dis
import hashlib
import io
import pickle
import struct
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flinkmagic.functions.user_modules import (
    CannotCompareError,
    ModuleSources,
    absolute,
    is_changing,
    is_clock_word,
    library_version,
)

_BUILTIN_TYPE, _SUBIMPORT, _BROADCAST = "_builtin_type", "subimport", "_from_id"
_RANDOM_IDS = {"_make_skeleton_class": 4, "_make_skeleton_enum": 5, "_make_typevar": 5}
"""Functions of cloudpickle's, and which of their arguments is an id that it made up."""
_PLACES = frozenset({"__file__", "__path__", "__firstlineno__"})
_HARMLESS = frozenset({("datetime", "time")})
"""What only looks like a changing one: the class of times of day."""
_CONSTS = 7
"""Which argument of `types.CodeType` holds the constants, in all versions."""


@dataclass(frozen=True)
class CodeFingerprint:
    """What a pickled function does.

    Attributes
    ----------
    digest : str
        Equal for functions that do the same.
    portable : bool
        Whether it means the same in another process. What refers to a broadcast variable does not.
    """

    digest: str
    portable: bool = True


class _Record:
    """What a class or a function of the pickle would have made of its arguments."""

    symbol = ("", "")
    made: list[_Record]
    state: Any = None

    def __new__(cls, *args: Any, **options: Any) -> _Record:
        record = object.__new__(cls)
        record.args, record.options = args, options
        record.items, record.callee = [], None
        cls.made.append(record)
        return record

    args: tuple[Any, ...]
    options: dict[str, Any]
    items: list[Any]
    callee: _Record | None

    def __init__(self, *args: Any, **options: Any) -> None:
        """Arguments were taken when it was made."""

    def __call__(self, *args: Any, **options: Any) -> _Record:
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


class _InertUnpickler(pickle.Unpickler):
    """Reads a pickle and runs nothing of it."""

    def __init__(self, pickled: bytes) -> None:
        super().__init__(io.BytesIO(pickled))
        self.made: list[_Record] = []
        self._symbols: dict[tuple[str, str], type[_Record]] = {}

    def find_class(self, module: str, name: str) -> type[_Record]:
        symbol = (module, name)
        if symbol not in self._symbols:
            self._symbols[symbol] = type(name, (_Record,), {"symbol": symbol, "made": self.made})
        return self._symbols[symbol]

    def persistent_load(self, pid: Any) -> Any:
        raise CannotCompareError("its pickle refers to something outside of it")


def fingerprint(pickled: bytes, sources: ModuleSources | None = None) -> CodeFingerprint:
    """The fingerprint of a pickled function, or of anything else that cloudpickle made a pickle of.

    Parameters
    ----------
    pickled : bytes
        What PySpark ships.
    sources : ModuleSources, optional
        Looks modules up; to be handed in where several functions are looked at at one time.

    Raises
    ------
    CannotCompareError
        Where the function holds or refers to something that cannot be followed.
    """
    unpickler = _InertUnpickler(pickled)
    try:
        root = unpickler.load()
        digest = _Digest(sources or ModuleSources())
        # What is done to an object after it was made (the state of a function, say) is a call whose value nobody holds.
        digest.add([root, unpickler.made])
        return digest.result()
    except (pickle.UnpicklingError, AttributeError, EOFError, TypeError, ValueError) as error:
        raise CannotCompareError(f"its pickle cannot be read: {error}") from error
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
        elif isinstance(value, type) and issubclass(value, _Record):
            self._add_symbol(value.symbol)
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
        """In an order that does not depend on where objects lie in memory or on the process's hash seed."""

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
        elif isinstance(value, _Record):
            self._add_code(value) if value.is_code else self._add_record(value)
        else:
            raise CannotCompareError(f"it holds a {type(value).__name__}")

    def _add_record(self, record: _Record) -> None:
        self._add_symbol(record.symbol)
        name, args = record.symbol[1], list(record.args)
        if name == _SUBIMPORT and args and isinstance(args[0], str):
            self._add_module(args[0])
        if name == _BROADCAST:
            self._portable = False
        if name in _RANDOM_IDS and len(args) > _RANDOM_IDS[name]:
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
        is_library = library_version(module) is not None
        if any(map(is_changing, module.split("."))) or (is_library and is_changing(name) and symbol not in _HARMLESS):
            raise CannotCompareError(f"its code refers to {module}.{name}")
        self._add_module(module)

    def _add_module(self, name: str) -> None:
        if name == "__main__":
            raise CannotCompareError("it refers to a name of __main__ that was not shipped with it")
        version = library_version(name)
        if version is not None:
            if any(map(is_changing, name.split("."))):
                raise CannotCompareError(f"its code refers to the module {name}")
            self._modules[name] = version
        else:
            self._modules.update(self._sources.of(name))

    def _add_code(self, record: _Record) -> None:
        """All of a code object but its file name, first line and line table."""
        args = list(record.args)
        consts = args[_CONSTS]
        args[_CONSTS] = (None,) * len(consts)
        code = types.CodeType(*args)
        for name in code.co_names:
            if is_changing(name):
                raise CannotCompareError(f"its code names {name!r}")
        if any(map(is_clock_word, consts)):
            raise CannotCompareError("its code holds 'now' or 'today', which may stand for the time of the run")
        for module in _imported_in(code, consts):
            self._add_module(module)
        numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_nlocals)
        self._add_all("code", (*numbers, code.co_stacksize, code.co_flags, code.co_code))
        self._add_all("names", (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
        self._add_all("name", (code.co_name, getattr(code, "co_exceptiontable", b"")))
        self._add_all("consts", consts)


def _imported_in(code: types.CodeType, consts: tuple[Any, ...]) -> Iterator[str]:
    """What a function imports inside its body; what is taken out of a package may be a module."""
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
