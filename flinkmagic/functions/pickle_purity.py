"""Judges what a function's pickle holds: each function, class and value."""

from __future__ import annotations

import os
import sysconfig
from typing import Any

from flinkmagic.functions import known
from flinkmagic.functions.code_references import (
    REFLECTIVE,
    VALUE,
    CodeReader,
    Meanings,
    Module,
    NotKnownPureError,
    Symbol,
)
from flinkmagic.functions.code_view import CodeView
from flinkmagic.functions.inert_pickle import SKELETONS, Record, is_symbol, skeleton_of
from flinkmagic.functions.judge import Judge
from flinkmagic.functions.known.spark import CLOUDPICKLE

_NO_VALUES = frozenset(
    {"__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__dict__", "__doc__",
     "__firstlineno__", "__globals__", "__closure__", "__module__", "__name__", "__qualname__", "__static_attributes__",
     "__type_params__", "__weakref__", "_cloudpickle_submodules"}
)  # fmt: skip
"""Parts of a function's or class's state that do nothing, or are looked at in another way."""

_GENERATORS = ("abc", "contextlib", "dataclasses", "enum", "functools", "reprlib", "typing")
"""Python's modules that make functions and classes around the user's: cloudpickle includes these functions."""
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
_GENERATED_IN = frozenset(
    [os.path.join(_STANDARD_LIBRARY, f"{module}.py") for module in _GENERATORS]
    + [os.path.join(_STANDARD_LIBRARY, "collections", "__init__.py")]
)


class PickleReader:
    """Reads the records that a pickle of a root is made of, and tells a judge what it refers to."""

    def __init__(self, judge: Judge, root: Any, made: list[Record]) -> None:
        self._judge = judge
        self._root = root
        self._seen: dict[int, Any] = {}
        self._states: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        for record in made:
            if record.symbol[1] in ("_function_setstate", "_class_setstate") and record.symbol[0] in CLOUDPICKLE:
                target, state = record.args
                self._states[id(skeleton_of(target) or target)] = state

    def read(self) -> None:
        """Judge all that the pickle holds.

        Raises
        ------
        NotKnownPureError
            If something is not known to be pure.
        """
        self._value(self._root)

    def _value(self, value: Any) -> None:
        if isinstance(value, str):
            self._judge.text(value)
        elif is_symbol(value):
            self._judge.symbol(*value.symbol)
        elif isinstance(value, type):
            self._value(skeleton_of(value))
        elif isinstance(value, tuple | list | set | frozenset | dict | Record) and id(value) not in self._seen:
            self._seen[id(value)] = value
            if isinstance(value, Record):
                self._record(value)
            elif isinstance(value, dict):
                self._values(*value.keys(), *value.values())
            else:
                self._values(*value)

    def _values(self, *values: Any) -> None:
        for value in values:
            self._value(value)

    def _record(self, record: Record) -> None:
        module, name = record.symbol
        made_of = type(record).skeleton
        if record.callee is not None and not record.is_code:
            self._values(record.callee, *record.args, *record.items)
            self._state(record.state)
            return
        if made_of is not None:
            self._value(made_of)
        elif module in CLOUDPICKLE:
            self._made_again(record, name)
            return
        elif record.symbol == ("builtins", "getattr"):
            self._attribute(*record.args)
            return
        elif record.symbol in (("operator", "attrgetter"), ("operator", "methodcaller")):
            self._by_name(name, record.args)
            return
        elif module == "itertools":
            raise NotKnownPureError(f"it continues an iterator from call to call: {module}.{name}")
        else:
            self._judge.symbol(module, name)
        self._values(*record.args, *record.options.values(), *record.items)
        self._state(record.state)

    def _state(self, state: Any) -> None:
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                for name in part:
                    self._judge.define(str(name))
                self._values(*part.values())
            else:
                self._value(part)

    def _attribute(self, owner: Any, name: Any, *default: Any) -> None:
        if _is_module(owner):
            self._judge.symbol(str(owner.args[0]), str(name))
            return
        self._value(owner)
        if name not in ("__new__", "_unpickle"):
            if is_symbol(owner):
                self._judge.attribute_of_symbol(Symbol(*owner.symbol), str(name))
            self._judge.attribute(str(name), called=True)

    def _by_name(self, how: str, args: tuple[Any, ...]) -> None:
        for name in args[:1] if how == "methodcaller" else args:
            for part in str(name).split("."):
                self._judge.attribute(part, called=how == "methodcaller")
        self._values(*args)

    # -- what cloudpickle brings along ------------------------------------------------------------------------

    def _made_again(self, record: Record, name: str) -> None:
        if name == "_make_function":
            self._function(record)
        elif name in SKELETONS:
            self._class(record)
        elif name == "subimport":
            raise NotKnownPureError(f"it holds the module {record.args[0]} as a value")
        elif record.is_code:
            raise NotKnownPureError("it holds code that belongs to no function")
        else:
            self._values(*record.args, *record.items)

    def _function(self, record: Record) -> None:
        code = record.args[0]
        found = self._states.get(id(record))
        if found is None or not (isinstance(code, Record) and code.is_code):
            raise NotKnownPureError("its pickle cannot be read: a function without a state")
        attributes, state = found
        view = CodeView.of(code)
        names: dict[str, Any] = state.get("__globals__") or {}
        cells = state.get("__closure__") or ()
        contents = map(_content, cells)
        closure = {name: self._meanings(held) for name, held in zip(view.code.co_freevars, contents, strict=False)}
        self._values(*attributes.values(), *(held for name, held in state.items() if name not in _NO_VALUES))
        if _is_known_code(view.code.co_filename, str(state.get("__module__"))):
            return
        for value in names.values():
            self._meanings(value)

        def global_name(name: str) -> Meanings:
            if name in names:
                return self._meanings(names[name])
            return self._judge.builtin(name)

        CodeReader(self._judge, global_name).read(view, closure)

    def _meanings(self, value: Any) -> Meanings:
        """Return what a name refers to that is bound to a value of the pickle, and judge the value."""
        if _is_module(value):
            return frozenset({Module(str(value.args[0]))})
        if is_symbol(value):
            module, name = value.symbol
            if "." not in name and not self._judge.is_user_module(module):
                if Symbol(module, name) not in REFLECTIVE:
                    self._judge.symbol(module, name)
                return frozenset({Symbol(module, name)})
        self._value(value)
        return VALUE

    def _class(self, record: Record) -> None:
        constructor, _, bases, *options = record.args
        self._values(constructor, bases, *options[:1])
        attributes, _ = self._states.get(id(record), ({}, {}))
        for name, value in attributes.items():
            self._judge.define(str(name))
            if name == "__annotations__" and isinstance(value, dict):
                for field in value:
                    self._judge.define(str(field))
            if name not in _NO_VALUES:
                self._value(value)


def _is_module(value: Any) -> bool:
    return isinstance(value, Record) and value.symbol[1] == "subimport" and value.symbol[0] in CLOUDPICKLE


def _is_known_code(filename: str, module: str) -> bool:
    """Return whether a function's code is known to be pure and not the user's; what it holds is judged separately."""
    if filename in _GENERATED_IN:
        return True
    return known.is_all_pure(module) and filename.endswith(module.replace(".", os.sep) + ".py")


def _content(cell: Any) -> Any:
    return cell.args[0] if isinstance(cell, Record) and cell.args else None
