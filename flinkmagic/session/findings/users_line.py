"""Changes one call in a line of the user's, so that it can be pasted as a cure.

Each function returns an empty text unless it is plain what to change: the line is a whole statement, and has one such
call. The user's words stay as they are, without a comment at the end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from flinkmagic.session.findings.facts import OperatorFacts

Edit: TypeAlias = tuple[int, int, str]
"""From which byte of the line to which one, and what comes there."""
_Node = TypeVar("_Node", bound=ast.AST)


def without_call(code: str, *methods: str) -> str:
    """Return a line without a call of one of some methods: ``df.orderBy("id").limit(3)`` as ``df.limit(3)``."""
    line = _Line(code)
    call = line.method(*methods)
    # An order of a window is no sort of rows.
    is_of_rows = call is not None and _root(call.rows) != "Window"
    return line.edited((call.begin, call.end, "")) if call is not None and is_of_rows else ""


def with_repartition(code: str, partitions: int) -> str:
    """Return a line with ``repartition`` in the place of ``coalesce``, to as many partitions."""
    line = _Line(code)
    call = line.method("coalesce")
    if call is None or call.node.keywords or [_number(one) for one in call.node.args] != [partitions]:
        return ""
    return line.edited((call.begin, call.end, f".repartition({partitions})"))


def with_number(code: str, method: str, position: int, number: int, keyword: str = "") -> str:
    """Return a line with another number as an argument of a method.

    Parameters
    ----------
    position : int
        Of the argument.
    keyword : str, optional
        What it is called, if the call may be without it.
    """
    line = _Line(code)
    call = line.method(method)
    if call is None or not call.node.args or any(isinstance(one, ast.Starred) for one in call.node.args):
        return ""
    named = [one.value for one in call.node.keywords if one.arg in (keyword, None)]
    there = [*call.node.args[position : position + 1], *named]
    if len(there) > 1 or (there and _number(there[0]) is None) or not (there or keyword):
        return ""
    if there:
        return line.edited((_begin(there[0]), _end(there[0]), str(number)))
    return line.edited((call.end - 1, call.end - 1, f", {keyword}={number}"))


def with_broadcast(code: str, side: int) -> str:
    """Return a line with a join of which one side is broadcast: 0 is the one whose method is called."""
    line = _Line(code)
    call = line.method("join")
    if call is None or not call.node.args or "broadcast" in code:
        return ""
    wanted = call.rows if side == 0 else call.node.args[0]
    return line.edited((_begin(wanted), _begin(wanted), "F.broadcast("), (_end(wanted), _end(wanted), ")"))


def with_merge_hint(code: str) -> str:
    """Return a line with a hint for a sort-merge join in the place of ``F.broadcast(df)``."""
    line = _Line(code)
    call = line.method("broadcast")
    if call is None or len(call.node.args) != 1 or not isinstance(call.node.args[0], ast.Name):
        return ""
    return line.edited((_begin(call.node), call.end, f'{call.node.args[0].id}.hint("merge")'))


def with_distinct_keys(code: str) -> str:
    """Return a line with a join by named columns in which the other side has each key once."""
    line = _Line(code)
    call = line.method("join")
    if call is None or len(call.node.args) < 2 or not isinstance(call.node.args[0], ast.Name):
        return ""
    other, by = call.node.args[:2]
    keys = _texts(by.elts if isinstance(by, ast.List) else [by])
    return line.edited((_end(other), _end(other), f".dropDuplicates([{_quoted(keys)}])")) if keys else ""


def sides_of_join(code: str) -> tuple[str, str] | None:
    """Return the names of the two DataFrames that a line joins; None if one of them is an expression."""
    call = _Line(code).method("join", "crossJoin")
    if call is None or not call.node.args:
        return None
    left, right = call.rows, call.node.args[0]
    return (left.id, right.id) if isinstance(left, ast.Name) and isinstance(right, ast.Name) else None


def with_partitions_together(code: str) -> str:
    """Return a write into folders with the rows of each folder in one partition."""
    line = _Line(code)
    by = line.method("partitionBy")
    keys = _texts(by.node.args) if by is not None else ()
    return line.spread(f".repartition({_quoted(keys)})") if keys else ""


def with_fewer_files(code: str, files: int) -> str:
    """Return a write with another number of files."""
    return _Line(code).spread(f".coalesce({files})")


def argument_of_function(code: str) -> str:
    """Return, as a column, the only argument with which a line calls what it makes by ``udf``."""
    line = _Line(code)
    called = [one for one in line.nodes(ast.Call) if isinstance(one.func, ast.Call) and _name(one.func) == "udf"]
    if len(called) != 1 or len(called[0].args) != 1 or called[0].keywords:
        return ""
    (argument,) = called[0].args
    names = _texts([argument])
    if names:
        return f"F.col({_quoted(names)})"
    return line.text(argument) if isinstance(argument, (ast.Call, ast.Attribute, ast.Subscript, ast.Name)) else ""


def quoted(text: str) -> str:
    """Return a text as Python's literal, in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def assigned(source: OperatorFacts | None, call: str) -> str:
    """Return a line that calls a method of what an operator makes, and gives the result the same name."""
    name = source.variable if source is not None else ""
    return f"{name} = {name}.{call}" if name else f"df.{call}"


def beside(scan: OperatorFacts) -> str:
    """Return, as Python's literal, where to write what a scan reads: beside it, if that is one folder or file."""
    paths = scan.metrics.get("paths", ())
    return quoted(f"{paths[0].rstrip('/')}-as-parquet" if len(paths) == 1 else "path")


@dataclass(frozen=True)
class _Method:
    """A call of a method, or of a function of a module."""

    node: ast.Call
    rows: ast.expr
    """Of what it is called."""
    begin: int
    """Where its dot is."""

    @property
    def end(self) -> int:
        return _end(self.node)


class _Line:
    """A line that is an assignment, or an expression; of any other nothing is found."""

    def __init__(self, code: str) -> None:
        self._bytes = code.strip().encode()
        body = _parsed(self._bytes)
        is_plain = len(body) == 1 and isinstance(body[0], (ast.Assign, ast.AnnAssign, ast.Expr))
        self._statement = body[0] if is_plain else None

    def nodes(self, kind: type[_Node]) -> list[_Node]:
        """Return all nodes of a kind."""
        found = ast.walk(self._statement) if self._statement is not None else ()
        return [one for one in found if isinstance(one, kind)]

    def method(self, *names: str) -> _Method | None:
        """Return the only call of a method with one of some names; None if there are several, or none."""
        found = [
            _Method(one, one.func.value, self._bytes.rindex(b".", 0, _end(one.func) - len(one.func.attr.encode())))
            for one in self.nodes(ast.Call)
            if isinstance(one.func, ast.Attribute)
            and one.func.attr in names
            and not isinstance(one.func.value, ast.Constant)  # a text has methods of these names, too
        ]
        return found[0] if len(found) == 1 else None

    def text(self, node: ast.expr) -> str:
        """Return the text of a node."""
        return self._bytes[_begin(node) : _end(node)].decode()

    def spread(self, call: str) -> str:
        """Return the line with a call before ``.write``; one that chooses partitions there already is replaced."""
        writes = [one for one in self.nodes(ast.Attribute) if one.attr == "write"]
        if len(writes) != 1:
            return ""
        rows = writes[0].value
        end = self._bytes.rindex(b".", 0, _end(writes[0]) - len("write"))
        chosen = self.method("repartition", "coalesce")
        begin = chosen.begin if chosen is not None and chosen.node is rows else end
        return self.edited((begin, end, call))

    def edited(self, *edits: Edit) -> str:
        """Return the statement with some parts replaced; empty if it is none then."""
        if self._statement is None:
            return ""
        text = self._bytes[: self._statement.end_col_offset]
        for begin, end, new in sorted(edits, reverse=True):
            text = text[:begin] + new.encode() + text[end:]
        return text.decode() if _parsed(text) else ""


def _parsed(text: bytes) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except SyntaxError:  # a part of a statement
        return []


def _name(call: ast.Call) -> str:
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _root(node: ast.expr) -> str:
    """Return the name with which a chain of calls begins."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _texts(nodes: Iterable[ast.expr]) -> tuple[str, ...]:
    """Return the texts that some nodes are; nothing if one is none."""
    found = [one.value if isinstance(one, ast.Constant) else None for one in nodes]
    texts = tuple(one for one in found if isinstance(one, str))
    return texts if len(texts) == len(found) else ()


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _begin(node: ast.expr) -> int:
    return node.col_offset


def _end(node: ast.expr) -> int:
    assert node.end_col_offset is not None
    return node.end_col_offset
