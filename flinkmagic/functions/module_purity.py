"""Finds which names of a user's module are known to be pure.

A worker that imports the module runs its top level, so that must be pure. A function or class in it counts only if it
is referred to: a module may hold a job's helpers beside code that reads files.
"""

from __future__ import annotations
import __future__

import ast
import os
from typing import Protocol

from flinkmagic.functions import known
from flinkmagic.functions.code_references import VALUE, CodeReader, Judge, Meanings, Module, NotKnownPureError
from flinkmagic.functions.code_view import CodeView
from flinkmagic.functions.user_modules import CannotCompareError, absolute, find_module, read_source

Stamp = tuple[str, str, int, int]
"""A module, its file, and that file's size and modification time."""


class ModuleJudge(Judge, Protocol):
    """A judge that knows the user's modules."""

    def builtin(self, name: str) -> Meanings:
        """Judge a builtin name of Python."""

    def user_module(self, name: str) -> UserModule:
        """Return a module of the user's."""

    def is_user_module(self, name: str) -> bool:
        """Return whether it is a module of the user's that can be found."""


class UserModule:
    """A module of the user's, as its file describes it."""

    def __init__(self, name: str, judge: ModuleJudge) -> None:
        self.name = name
        self.stamp: Stamp | None = None
        self._judge = judge
        self._statements: list[ast.stmt] = []
        self._lazy: dict[str, list[ast.stmt]] = {}
        self._bound: dict[str, set[object]] = {}
        self._stars: list[str] = []
        self._read: set[int] = set()
        self._flags = 0
        spec = find_module(name)
        assert spec is not None
        is_package = spec.submodule_search_locations is not None
        self.package = name if is_package else name.rpartition(".")[0]
        if spec.origin is not None:
            self._parse(spec)
            self.stamp = stamp_of(name)
        self._reader = CodeReader(judge, self.meanings_of, self.package, self._bind)

    def _parse(self, spec: object) -> None:
        origin = str(spec.origin)  # type: ignore[attr-defined]
        if not origin.endswith(".py"):
            raise NotKnownPureError(f"the module {self.name} is not written in Python")
        try:
            tree = ast.parse(read_source(self.name, spec))  # type: ignore[arg-type]
        except SyntaxError as error:
            raise NotKnownPureError(f"the module {self.name} cannot be parsed: {error}") from None
        except CannotCompareError as error:
            raise NotKnownPureError(str(error)) from None
        for statement in tree.body:
            self._sort(statement)

    def _sort(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            if any(alias.name == "annotations" for alias in statement.names):
                self._flags = __future__.annotations.compiler_flag
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._lazy.setdefault(statement.name, []).append(statement)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                self._lazy.setdefault(alias.asname or alias.name.partition(".")[0], []).append(statement)
            self._statements.append(statement)
        elif isinstance(statement, ast.ImportFrom):
            origin = absolute(statement.module or "", statement.level, self.package)
            for alias in statement.names:
                if alias.name == "*":
                    self._stars.append(origin)
                else:
                    self._lazy.setdefault(alias.asname or alias.name, []).append(statement)
            self._statements.append(statement)
        elif not _is_skipped(statement):
            self._statements.append(statement)

    def run(self) -> None:
        """Judge what importing the module does.

        Raises
        ------
        NotKnownPureError
            If that is not known to be pure.
        """
        statements, self._statements = self._statements, []
        if self.name != self.package and self.package:
            self._judge.module(self.package)
        elif "." in self.name:
            self._judge.module(self.name.rpartition(".")[0])
        for statement in statements:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    self._judge.module(alias.name)
            elif isinstance(statement, ast.ImportFrom):
                self._judge.module(absolute(statement.module or "", statement.level, self.package))
            else:
                self._run(statement)

    def _run(self, statement: ast.stmt) -> None:
        module = ast.Module([statement], [])
        code = compile(module, f"<{self.name}>", "exec", self._flags, dont_inherit=True)
        try:
            self._reader.read(CodeView.of(code))
        except NotKnownPureError as why:
            if str(why).startswith("the module "):
                raise
            raise NotKnownPureError(f"the module {self.name}, line {statement.lineno}: {why}") from None

    def _bind(self, name: str, meanings: Meanings) -> None:
        self._bound.setdefault(name, set()).update(meanings)

    def has(self, name: str) -> bool:
        """Return whether it binds a name."""
        return name in self._bound or name in self._lazy

    def meanings_of(self, name: str) -> Meanings:
        """Return what a name refers to in its code."""
        found: set[object] = set(self._bound.get(name, ()))
        for statement in self._lazy.get(name, ()):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                found |= self._imported(statement, name)
            else:
                found.add(None)
                if id(statement) not in self._read:
                    self._read.add(id(statement))
                    self._run(statement)
        if found:
            return frozenset(found)  # type: ignore[arg-type]
        for star in self._stars:
            if self._judge.is_user_module(star):
                if self._judge.user_module(star).has(name):
                    return self._judge.user_module(star).meanings_of(name)
            elif known.is_pure(star, name):
                return self._judge.attribute_of_module(star, name)
        if name == "__file__" or (name.startswith("__") and name.endswith("__")):
            return VALUE
        return self._judge.builtin(name)

    def _imported(self, statement: ast.Import | ast.ImportFrom, name: str) -> Meanings:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.asname == name:
                    return frozenset({Module(known.public_module(alias.name))})
            return frozenset({Module(name)})
        origin = absolute(statement.module or "", statement.level, self.package)
        taken = next(alias.name for alias in statement.names if (alias.asname or alias.name) == name)
        return self._judge.attribute_of_module(origin, taken)


def stamp_of(module: str) -> Stamp | None:
    """Return the current state of a module's file, or of the archive that holds it; None if there is none."""
    spec = find_module(module)
    path = spec.origin if spec is not None else None
    while path:
        try:
            status = os.stat(path)
        except NotADirectoryError:
            path = os.path.dirname(path)
        except OSError:
            return None
        else:
            return module, path, status.st_size, status.st_mtime_ns
    return None


def _is_skipped(statement: ast.stmt) -> bool:
    """Return whether a worker does not run a statement: the main program, and what is for type checkers."""
    if not isinstance(statement, ast.If):
        return False
    names = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(statement.test) if isinstance(node, ast.Attribute)}
    return bool(names & {"TYPE_CHECKING"}) or (isinstance(statement.test, ast.Compare) and "__name__" in names)
