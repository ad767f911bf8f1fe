"""Finds the notebook's names that a cell reads and binds, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class CellNames:
    """The names of a cell."""

    reads: frozenset[str] = frozenset()
    """Names, also of builtins, whose value from before the cell may be used."""
    binds: frozenset[str] = frozenset()
    """Names that it assigns, defines, imports or deletes."""
    changes: frozenset[str] = frozenset()
    """Names of objects in which it sets an item or an attribute."""


def cell_names(source: str) -> CellNames:
    """Return the names of a cell; none if the source is no Python.

    A name that is surely bound before it is used is not read. Loops are assumed to run, and a ``try`` to succeed.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return CellNames()
    names = _Names()
    names.visit_all(tree.body)
    reads = names.reads | (names.of_functions - names.binds)
    return CellNames(frozenset(reads), frozenset(names.binds), frozenset(names.changes))


class _Names(ast.NodeVisitor):
    """Visits statements in the order in which they run."""

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.binds: set[str] = set()
        self.changes: set[str] = set()
        self.of_functions: set[str] = set()
        self._bound: set[str] = set()

    def visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _bind(self, name: str) -> None:
        self.binds.add(name)
        self._bound.add(name)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.id)
        else:
            self._bind(node.id)

    def _read(self, name: str) -> None:
        if name not in self._bound:
            self.reads.add(name)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit_all([node.value, *node.targets])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit_all([node.annotation, node.value])
        if node.value is not None or not isinstance(node.target, ast.Name):
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._read(node.target.id)
        self.visit_all([node.value, node.target])

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit_all([node.value, node.target])

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._change(node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._change(node)
        self.generic_visit(node)

    def _change(self, node: ast.Subscript | ast.Attribute) -> None:
        owner: ast.expr = node
        while isinstance(owner, (ast.Subscript, ast.Attribute)):
            owner = owner.value
        if not isinstance(node.ctx, ast.Load) and isinstance(owner, ast.Name):
            self.changes.add(owner.id)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit_all([node.iter, node.target, *node.body, *node.orelse])

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._either([node.body, node.orelse])

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        self._either([[case.pattern, *filter(None, [case.guard]), *case.body] for case in node.cases])

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.generic_visit(node)
        if node.name is not None:
            self._bind(node.name)

    visit_MatchStar = visit_MatchAs  # noqa: N815

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        if node.rest is not None:
            self._bind(node.rest)

    def visit_Try(self, node: ast.Try) -> None:
        before = set(self._bound)
        self.visit_all([*node.body, *node.orelse])
        after, self._bound = self._bound, before
        for handler in node.handlers:
            self._bound = set(before)
            self.visit_all([handler.type])
            if handler.name is not None:
                self._bound.add(handler.name)  # unbound after the handler
            self.visit_all(handler.body)
        self._bound = after
        self.visit_all(node.finalbody)

    visit_TryStar = visit_Try  # noqa: N815

    def _either(self, branches: list[list[ast.AST]] | list[list[ast.stmt]]) -> None:
        before, ends = set(self._bound), []
        for branch in branches:
            self._bound = set(before)
            self.visit_all(branch)
            ends.append(self._bound)
        self._bound = set.intersection(*ends) if ends else before

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name != "*":
                self._bind(alias.asname or alias.name.partition(".")[0])

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit_all([*node.decorator_list, *_defaults(node.args)])
        self._bind(node.name)
        free, written = _of_function(node)
        self.of_functions |= free
        self.binds |= written

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit_all(_defaults(node.args))
        for name in _of_function(node)[0]:
            self._read(name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.visit_all([*node.decorator_list, *node.bases, *(one.value for one in node.keywords)])
        body = _Names()
        body._bound = set(self._bound)
        body.visit_all(node.body)
        self.reads |= body.reads
        self.of_functions |= body.of_functions - {node.name}
        self._bind(node.name)

    def _visit_comprehension(self, node: ast.expr) -> None:
        before, binds = set(self._bound), set(self.binds)
        generators = getattr(node, "generators", [])
        for one in generators:
            self.visit_all([one.iter, one.target, *one.ifs])
        own = {name.id for one in generators for name in ast.walk(one.target) if isinstance(name, ast.Name)}
        self.visit_all(part for field, part in ast.iter_fields(node) if field != "generators")
        self.binds = binds | (self.binds - own)
        self._bound = before | (self._bound - own)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension  # noqa: N815


def _defaults(args: ast.arguments) -> Iterator[ast.expr]:
    yield from args.defaults
    yield from (one for one in args.kw_defaults if one is not None)


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> tuple[set[str], set[str]]:
    """Return the names that a function reads from outside, and those that it binds there (``global``)."""
    args = node.args
    own = {one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    own |= {one.arg for one in (args.vararg, args.kwarg) if one is not None}
    loads: set[str] = set()
    declared: set[str] = set()
    stores: set[str] = set()
    open_: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    while open_:
        part = open_.pop()
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            free, written = _of_function(part)
            loads |= free
            declared |= written
            open_ += [*_defaults(part.args), *getattr(part, "decorator_list", [])]
            stores.add(getattr(part, "name", ""))
            continue
        if isinstance(part, ast.Name):
            (loads if isinstance(part.ctx, ast.Load) else stores).add(part.id)
        elif isinstance(part, ast.Global):
            declared.update(part.names)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            stores.update(alias.asname or alias.name.partition(".")[0] for alias in part.names)
        elif isinstance(part, (ast.ClassDef, ast.ExceptHandler)):
            stores.add(part.name or "")
        open_ += ast.iter_child_nodes(part)
    return loads - own - (stores - declared), declared
