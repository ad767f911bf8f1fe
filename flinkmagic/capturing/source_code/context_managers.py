"""Tells whether a context manager reacts to an exception that leaves its block.

The names in the ``with`` statement are looked up in the frame that runs it; nothing is called. A context manager that
cannot be found that way counts as one that does not react, and so do those of installed libraries: they close what they
have opened.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from flinkmagic.capturing.source_code.syntax import parsed

_INSTALLED = (
    *{sysconfig.get_paths()[name] + os.sep for name in ("purelib", "platlib")},
    str(Path(__file__).parents[2]) + os.sep,  # `capture` itself
)
_NOTHING = object()


def heeds_exceptions(expression: ast.expr, frame: FrameType, has_handlers: Callable[[CodeType, str], bool]) -> bool:
    """Return whether the context manager that an expression gives handles exceptions, or otherwise reacts to one.

    Parameters
    ----------
    expression : ast.expr
        What follows ``with``.
    frame : FrameType
        The frame that runs the statement.
    has_handlers : callable
        Returns whether the code of a function has handlers; the second argument is the text of its file.
    """
    called = expression.func if isinstance(expression, ast.Call) else expression
    found = _value_of(called, frame)
    generator = getattr(found, "__wrapped__", None)
    if isinstance(found, FunctionType):  # `contextlib.contextmanager` makes one of a generator function
        return (
            inspect.isgeneratorfunction(generator)
            and not _is_installed(generator.__code__)
            and has_handlers(generator.__code__, _source(generator.__code__))
        )
    owner = found if isinstance(found, type) else type(found)
    leave = inspect.getattr_static(owner, "__exit__", None)
    return isinstance(leave, FunctionType) and not _is_installed(leave.__code__) and _looks_at_exception(leave)


def _value_of(expression: ast.expr, frame: FrameType) -> Any:
    if isinstance(expression, ast.Name):
        for names in (frame.f_locals, frame.f_globals, vars(builtins)):
            if expression.id in names:
                return names[expression.id]
    elif isinstance(expression, ast.Attribute):
        owner = _value_of(expression.value, frame)
        found = _NOTHING if owner is _NOTHING else inspect.getattr_static(owner, expression.attr, _NOTHING)
        return found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
    return _NOTHING


def _is_installed(code: CodeType) -> bool:
    return code.co_filename.startswith(_INSTALLED)


def _source(code: CodeType) -> str:
    return "".join(linecache.getlines(code.co_filename))


def _looks_at_exception(leave: FunctionType) -> bool:
    """Return whether an ``__exit__`` uses what it is told about an exception, or may say that it is handled."""
    function = _definition(leave.__code__)
    if function is None:
        return True
    told = function.args.args[1:] + [one for one in (function.args.vararg,) if one is not None]
    names = {argument.arg for argument in told}
    return any(
        (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.Return) and not _says_no(node.value))
        for node in ast.walk(function)
    )


def _definition(code: CodeType) -> ast.FunctionDef | None:
    tree = parsed(_source(code))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)) if tree is not None else ()
    named = (node for node in functions if node.name == code.co_name and code.co_firstlineno in _first_lines(node))
    return next(named, None)


def _first_lines(function: ast.FunctionDef) -> tuple[int, ...]:
    return (function.lineno, *(decorator.lineno for decorator in function.decorator_list))


def _says_no(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and not value.value)
