"""Finds what a function's instructions refer to: names, modules, attributes, and what these give access to.

A function does only what it can name. So call graphs are not followed: a function may call, pass on or keep whatever it
refers to, and each reference is judged by itself. ``map(open, paths)`` is rejected merely because it names ``open``.
Only modules are followed further, also through variables: what is taken from them is a reference again. A module that
is passed on as a value cannot be followed, nor can an attribute whose name is computed.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from flinkmagic.functions.code_view import CodeView
from flinkmagic.functions.user_modules import absolute


class NotKnownPureError(Exception):
    """Says why a function is not known to be pure. Users never see it: it only prevents a reuse."""


@dataclass(frozen=True)
class Module:
    """A module, by its name."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """A function, class or constant of a library's module, which is known to be pure."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.module != "builtins" else self.name


Meaning = Module | Symbol | None
"""What a name may refer to. None: a value, or something of the user's."""
Meanings = frozenset[Meaning]
VALUE: Meanings = frozenset({None})
Names = Callable[[str], Meanings]
"""Looks up a global name."""
_Scope = dict[str, set[Meaning]]


class ReferenceJudge(Protocol):
    """Decides whether each reference is known to be pure; raises `NotKnownPureError` if not."""

    def module(self, name: str) -> None:
        """Judge the import of a module."""

    def attribute_of_module(self, module: str, name: str) -> Meanings:
        """Judge a name that is taken from a module."""

    def attribute_of_symbol(self, symbol: Symbol, name: str) -> None:
        """Judge an attribute of a library's class or function."""

    def attribute(self, name: str, called: bool) -> None:
        """Judge an attribute of a value."""

    def define(self, name: str) -> None:
        """Judge an attribute that an object of the user's is given under this name."""

    def text(self, text: str) -> None:
        """Judge a text constant."""


REFLECTIVE = frozenset(
    {Symbol("builtins", "getattr"), Symbol("operator", "attrgetter"), Symbol("operator", "methodcaller")}
)
"""What takes an attribute by a name that is a value."""

_SPECIAL_NAMES = frozenset(
    {"__annotations__", "__class__", "__classdict__", "__conditional_annotations__", "__debug__", "__doc__",
     "__firstlineno__", "__module__", "__name__", "__qualname__", "__static_attributes__", "__type_params__",
     ".defaults", ".generic_base", ".type_params"}
)  # fmt: skip
_LOCAL_LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_GLOBAL_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_PATH_OPTIONS = frozenset({"buf", "path_or_buf", "path_or_buffer"})
_TEXT_WRITERS = frozenset({"to_csv", "to_html", "to_json", "to_latex", "to_markdown", "to_string", "to_xml"})
"""Methods of pandas that return text if they are given no path."""
_STAR = 2
"""The intrinsic function that takes all names of a module."""


class CodeReader:
    """Reads code, and all code inside it, and tells a judge what it refers to.

    Parameters
    ----------
    package : str
        What relative imports start from.
    bind : callable, optional
        For a module's own code: takes what a name is bound to.
    """

    def __init__(
        self,
        judge: ReferenceJudge,
        names: Names,
        package: str = "",
        bind: Callable[[str, Meanings], None] | None = None,
    ) -> None:
        self._judge = judge
        self._names = names
        self._package = package
        self._bind = bind

    def read(self, view: CodeView, closure: dict[str, Meanings] | None = None) -> None:
        """Read a function, whose variables from around it are `closure`, or the code of a module."""
        enclosing: _Scope = {name: set(meanings) for name, meanings in (closure or {}).items()}
        outer = frozenset(view.code.co_freevars)
        self._read(view, enclosing, outer, top=True)

    def _read(self, view: CodeView, enclosing: _Scope, outer: frozenset[str], *, top: bool = False) -> None:
        scope: _Scope = {name: {None} for name in view.parameters}
        scope |= {name: enclosing.setdefault(name, set()) for name in view.code.co_freevars}
        known = -1
        # A name may be bound after the place where it is used, as in a loop.
        while known != sum(map(len, scope.values())):
            known = sum(map(len, scope.values()))
            _Pass(self, view, scope, outer, top).run()
            for inner in view.nested:
                if inner.code.co_name != "__annotate__":
                    self._read(inner, scope, outer & frozenset(inner.code.co_freevars))


class _Pass:
    """One walk over the instructions of a code object."""

    def __init__(self, reader: CodeReader, view: CodeView, scope: _Scope, outer: frozenset[str], top: bool) -> None:
        self._reader = reader
        self._judge = reader._judge
        self._view = view
        self._scope = scope
        self._outer = outer
        self._is_module = top and reader._bind is not None
        self._top: Meanings = VALUE
        self._imported: Meanings = VALUE
        self._place = 0

    def run(self) -> None:
        for text in _texts(self._view.consts):
            self._judge.text(text)
        self._judge.define(self._view.code.co_name)
        for place, one in enumerate(self._view.instructions):
            self._place = place
            top = self._top | VALUE if one.is_jump_target else self._top
            self._top = self._step(one, top)

    def _step(self, one: dis.Instruction, top: Meanings) -> Meanings:
        """Judge an instruction by the top of the stack; return what is on top after it."""
        name = one.opname
        if name in ("LOAD_ATTR", "LOAD_METHOD"):
            return self._attribute(one.argval, top)
        if name == "LOAD_SUPER_ATTR":
            return self._attribute(one.argval, VALUE)
        if name.startswith("STORE_") and name not in ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE"):
            return self._store(one, top)
        if name == "IMPORT_FROM":
            return self._import_from(one.argval, top)
        if name == "POP_TOP":
            return self._pop(top)
        if name in ("SWAP", "ROT_TWO") and self._follows("IMPORT_FROM"):
            return top
        if name == "PUSH_NULL":
            return top
        if name == "IMPORT_STAR" or (name == "CALL_INTRINSIC_1" and one.arg == _STAR):
            return VALUE
        self._hand_on(top)
        return self._load(one)

    def _load(self, one: dis.Instruction) -> Meanings:
        name = one.opname
        if name in _GLOBAL_LOADS:
            return self._watched(self._global(one.argval))
        if name.startswith(_LOCAL_LOADS) and name != "LOAD_FAST_AND_CLEAR":
            loaded = one.argval if isinstance(one.argval, tuple) else (one.argval,)
            for first in loaded[:-1]:
                self._hand_on(self._local(first, name))
            return self._watched(self._local(loaded[-1], name))
        if name == "IMPORT_NAME":
            return self._import(one.argval)
        if name == "STORE_ATTR":
            self._judge.define(one.argval)
        if name == "DELETE_GLOBAL":
            raise NotKnownPureError(f"it changes the global variable {one.argval}")
        return VALUE

    def _hand_on(self, meanings: Meanings) -> None:
        for meaning in meanings:
            if isinstance(meaning, Module):
                raise NotKnownPureError(f"it hands the module {meaning.name} on as a value")

    def _follows(self, opname: str) -> bool:
        return self._place > 0 and self._view.instructions[self._place - 1].opname == opname

    # -- names ------------------------------------------------------------------------------------------------

    def _local(self, name: str, opname: str) -> Meanings:
        if opname.startswith("LOAD_FAST") and name not in self._view.code.co_varnames:
            return VALUE  # the cell of a variable, which is passed to an inner function
        return frozenset(self._scope.get(name) or VALUE)

    def _global(self, name: str) -> Meanings:
        if name in self._scope:  # one of the class's own names
            return frozenset(self._scope[name])
        if name in _SPECIAL_NAMES:
            return VALUE
        return self._reader._names(name)

    def _store(self, one: dis.Instruction, top: Meanings) -> Meanings:
        name = one.opname
        stored = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        if name == "STORE_GLOBAL" or (name == "STORE_DEREF" and stored[0] in self._outer):
            raise NotKnownPureError(f"it changes the variable {stored[0]} around it")
        if name == "STORE_NAME":
            self._store_name(stored[0], top)
        else:
            self._scope.setdefault(stored[0], set()).update(top)
        if name == "STORE_FAST_STORE_FAST":
            self._scope.setdefault(stored[1], set()).add(None)
        if name == "STORE_FAST_LOAD_FAST":
            return self._watched(self._local(stored[1], "LOAD_FAST"))
        return VALUE

    def _store_name(self, name: str, top: Meanings) -> None:
        if self._is_module:
            assert self._reader._bind is not None
            self._reader._bind(name, top)
            return
        self._hand_on(top)
        self._judge.define(name)
        self._scope.setdefault(name, set()).update(top)

    # -- imports ----------------------------------------------------------------------------------------------

    def _import(self, name: str) -> Meanings:
        level, taken = self._view.const(self._place - 2), self._view.const(self._place - 1)
        if level and not self._reader._package:
            raise NotKnownPureError("it imports relatively, from a place that its pickle does not tell")
        name = absolute(name, level or 0, self._reader._package)
        self._judge.module(name)
        # Without names to take, an import returns the package at the top.
        self._imported = frozenset({Module(name if taken else name.partition(".")[0])})
        return self._imported

    def _import_from(self, name: str, top: Meanings) -> Meanings:
        origin = top if self._follows("IMPORT_NAME") else self._imported
        found: set[Meaning] = set()
        for module in origin:
            if not isinstance(module, Module):
                raise NotKnownPureError(f"it imports {name} from what cannot be followed")
            found |= self._judge.attribute_of_module(module.name, name)
        return self._watched(frozenset(found))

    def _pop(self, top: Meanings) -> Meanings:
        if self._follows("SWAP") or self._follows("ROT_TWO"):
            # ``import a.b as c``: the next name is taken from what was taken from the package.
            self._imported = top
            return top
        return VALUE

    # -- attributes -------------------------------------------------------------------------------------------

    def _attribute(self, name: str, top: Meanings) -> Meanings:
        found: set[Meaning] = set()
        for meaning in top:
            if isinstance(meaning, Module):
                found |= self._judge.attribute_of_module(meaning.name, name)
            elif isinstance(meaning, Symbol):
                self._judge.attribute_of_symbol(meaning, name)
                found.add(None)
            else:
                self._attribute_of_value(name)
                found.add(None)
        return self._watched(frozenset(found))

    def _attribute_of_value(self, name: str) -> None:
        called = self._view.is_called(self._place)
        if name in _TEXT_WRITERS and called and self._gives_text():
            return
        if name == "query" and called and not _is_comparison(self._view.const(self._view.after(self._place))):
            raise NotKnownPureError("it calls query() with text that may call anything")
        self._judge.attribute(name, called)

    def _gives_text(self) -> bool:
        call = self._view.call_of(self._place)
        arguments = self._view.arguments(call) if call is not None else None
        return arguments is not None and not arguments[0] and not _PATH_OPTIONS.intersection(arguments[1])

    def _watched(self, meanings: Meanings) -> Meanings:
        """Return what was loaded; if it takes attributes by names that are values, the names must be constants."""
        for symbol in meanings & REFLECTIVE:
            assert isinstance(symbol, Symbol)
            names = self._names_given(symbol)
            if not names:
                raise NotKnownPureError(f"it calls {symbol} with a name that is not a constant")
            for name in names:
                for part in name.split("."):
                    self._judge.attribute(part, called=symbol.name == "methodcaller")
        return meanings

    def _names_given(self, symbol: Symbol) -> list[str]:
        view = self._view
        first = view.after(self._place)
        call = view.call_of(self._place)
        if call is None:
            return []
        if symbol.name == "methodcaller":
            given = [view.const(first)]
        elif symbol.name == "attrgetter":
            given = [view.const(place) for place in range(first, call) if view.instructions[place].opname != "KW_NAMES"]
        else:
            # The default, if there is one, is a single instruction.
            count = view.instructions[call].arg or 0
            given = [view.const(call - 1 if count == 2 else call - 2)] if count in (2, 3) else []
        return given if all(isinstance(name, str) for name in given) else []


def _texts(values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple | frozenset):
            yield from _texts(value)


def _is_comparison(text: object) -> bool:
    """Return whether text for ``DataFrame.query`` only compares and computes."""
    if not isinstance(text, str):
        return False
    try:
        tree = ast.parse(text.replace("@", "").strip(), mode="eval")
    except SyntaxError:
        return False
    return not any(isinstance(node, ast.Call | ast.Attribute | ast.Lambda) for node in ast.walk(tree))
