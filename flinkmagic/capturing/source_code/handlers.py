"""Tells whether an exception of a line would be handled.

A write that is put off cannot raise on its own line; one whose exception a handler waits for has to run there.

A context manager may be such a handler. The names in the ``with`` statement are looked up in the frame that runs it;
nothing is called. One that cannot be found that way counts as one that does not react, and so do those of installed
libraries: they close what they have opened.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

from flinkmagic.capturing.source_code.code_files import FLINKMAGIC, INSTALLED
from flinkmagic.capturing.source_code.syntax import parsed

_SUPPRESSING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex", "warns", "capture_exceptions"})
"""Context managers that handle exceptions, by name: of contextlib, pytest, unittest."""
_TRIES: tuple[type[ast.AST], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
_INSTALLED = (*INSTALLED, FLINKMAGIC)  # `capture` itself is a context manager
_NOTHING = object()
_Scope = tuple[str, int]
_MODULE: _Scope = ("<module>", 1)


@dataclass(frozen=True)
class Handler:
    """Lines whose exceptions are handled: `first` to `last`, by the statement that begins on line `at`.

    Where that is a ``with`` statement that has `managers`, it depends on these.
    """

    at: int
    first: int
    last: int
    managers: tuple[ast.expr, ...] = ()


def handler_of(frame: FrameType, source: str, after: int = 0) -> int | None:
    """Return the line of the ``try``, or ``with suppress(...)``, that handles what a frame's running line raises.

    Parameters
    ----------
    source : str
        The text that the frame's code was compiled from.
    after : int
        Only what begins after this line counts.

    Returns
    -------
    int or None
        The innermost one's line; None if there is none.
    """
    code = frame.f_code
    # The first line of a module, or of a cell's statement, differs between versions.
    scope = _MODULE if code.co_name.startswith(("<module>", "<cell line")) else (code.co_name, code.co_firstlineno)
    line = frame.f_lineno or 0
    around = [
        handler.at
        for handler in _handlers(source).get(scope, ())
        if handler.first <= line <= handler.last and handler.at > after and _handles(handler, frame)
    ]
    return max(around, default=None)


def _handles(handler: Handler, frame: FrameType) -> bool:
    if not handler.managers:
        return True
    return any(_heeds_exceptions(manager, frame) for manager in handler.managers)


def _has_handlers(code: CodeType, source: str) -> bool:
    """Return whether code has handlers; for a context manager's generator, those around its ``yield`` do not count."""
    return any(not handler.managers for handler in _handlers(source).get((code.co_name, code.co_firstlineno), ()))


@functools.lru_cache(maxsize=16)
def _handlers(source: str) -> dict[_Scope, list[Handler]]:
    found: dict[_Scope, list[Handler]] = {}
    tree = parsed(source)
    if tree is not None:
        for scope, handler in _in_scope(tree, _MODULE):
            found.setdefault(scope, []).append(handler)
    return found


def _in_scope(node: ast.AST, scope: _Scope) -> Iterator[tuple[_Scope, Handler]]:
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min((decorator.lineno for decorator in child.decorator_list), default=child.lineno)
            inner = (child.name, min(first, child.lineno))
        elif isinstance(child, ast.Lambda):
            inner = ("<lambda>", child.lineno)
        elif (isinstance(child, _TRIES) and child.handlers) or _is_suppressing(child):  # type: ignore[attr-defined]
            body = child.body  # type: ignore[attr-defined]
            yield scope, Handler(child.lineno, body[0].lineno, body[-1].end_lineno)  # type: ignore[attr-defined]
        elif isinstance(child, (ast.With, ast.AsyncWith)):
            managers = tuple(item.context_expr for item in child.items)
            yield scope, Handler(child.lineno, child.body[0].lineno, child.body[-1].end_lineno or 0, managers)
        yield from _in_scope(child, inner)


def _is_suppressing(node: ast.AST) -> bool:
    if not isinstance(node, (ast.With, ast.AsyncWith)):
        return False
    for item in node.items:
        called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in _SUPPRESSING:
            return True
    return False


# -- context managers ------------------------------------------------------------------------------------------------


def _heeds_exceptions(expression: ast.expr, frame: FrameType) -> bool:
    """Return whether what follows a frame's ``with`` handles an exception that leaves the block, or reacts to it."""
    called = expression.func if isinstance(expression, ast.Call) else expression
    found = _value_of(called, frame)
    generator = getattr(found, "__wrapped__", None)
    if isinstance(found, FunctionType):  # `contextlib.contextmanager` makes one of a generator function
        return (
            inspect.isgeneratorfunction(generator)
            and not _is_installed(generator.__code__)
            and _has_handlers(generator.__code__, _source(generator.__code__))
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
