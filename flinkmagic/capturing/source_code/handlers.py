"""Tells whether an exception of a line would be handled.

A write that is put off cannot raise on its own line; one whose exception a handler waits for has to run there.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType

from flinkmagic.capturing.source_code.context_managers import heeds_exceptions
from flinkmagic.capturing.source_code.syntax import parsed

_SUPPRESSING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex", "warns", "capture_exceptions"})
"""Context managers that handle exceptions, by name: of contextlib, pytest, unittest."""
_TRIES: tuple[type[ast.AST], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
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
    return any(heeds_exceptions(manager, frame, _has_handlers) for manager in handler.managers)


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
