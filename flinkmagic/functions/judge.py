"""Judges what a function refers to: by the tables of `known`, and the user's modules by their files.

A worker that imports a module runs its top level, so that must be pure. A function or class in it counts only if it is
referred to: a module may hold a job's helpers beside code that reads files.
"""

from __future__ import annotations
import __future__

import ast
import os
from importlib.machinery import ModuleSpec

from flinkmagic.functions import known
from flinkmagic.functions.code_references import (
    REFLECTIVE,
    VALUE,
    CodeReader,
    Meaning,
    Meanings,
    Module,
    NotKnownPureError,
    ReferenceJudge,
    Symbol,
)
from flinkmagic.functions.code_view import CodeView
from flinkmagic.functions.user_modules import CannotCompareError, absolute, find_module, library_version, read_source

Stamp = tuple[str, str, int, int]
"""A module, its file, and that file's size and modification time."""


class Judge(ReferenceJudge):
    """Judges what the functions of one pickle refer to."""

    def __init__(self) -> None:
        self._modules: dict[str, UserModule] = {}
        self._libraries: dict[str, bool] = {}
        self._attributes: dict[str, bool] = {}
        self._defined: set[str] = set()
        self._texts: set[str] = set()
        self._has_paths = False

    def stamps(self) -> tuple[Stamp, ...]:
        """Return the files of the user's modules that were read."""
        return tuple(module.stamp for module in self._modules.values() if module.stamp is not None)

    # -- modules and their names ------------------------------------------------------------------------------

    def is_user_module(self, name: str) -> bool:
        """Return whether it is a module of the user's that can be found."""
        if name not in self._libraries:
            self._libraries[name] = library_version(name) is None and find_module(name) is not None
        return self._libraries[name]

    def user_module(self, name: str) -> UserModule:
        """Return a module of the user's that can be imported without harm."""
        if name not in self._modules:
            module = UserModule(name, self)
            self._modules[name] = module
            module.run()
        return self._modules[name]

    def module(self, name: str) -> None:
        if self.is_user_module(name):
            self.user_module(name)

    def builtin(self, name: str) -> Meanings:
        """Judge a builtin name of Python."""
        if name == "getattr" or known.is_pure("builtins", name):
            return frozenset({Symbol("builtins", name)})
        if name in known.BUILTINS:
            raise NotKnownPureError(f"it names {name}")
        raise NotKnownPureError(f"it names {name}, which was not shipped with it")

    def attribute_of_module(self, module: str, name: str) -> Meanings:
        if self.is_user_module(module):
            return self._of_user_module(module, name)
        public = known.public_module(module)
        symbol = Symbol(public, name)
        if known.is_pure(public, name) or symbol in REFLECTIVE:
            self._has_paths = self._has_paths or public == "pathlib"
            return frozenset({symbol})
        if known.is_module(f"{public}.{name}"):
            return frozenset({Module(known.public_module(f"{public}.{name}"))})
        if name in ("__name__", "__version__"):
            return VALUE
        raise NotKnownPureError(f"it uses {module}.{name}, which is not known to be pure")

    def _of_user_module(self, module: str, name: str) -> Meanings:
        found = self.user_module(module)
        if not found.has(name) and self.is_user_module(f"{module}.{name}"):
            self.module(f"{module}.{name}")
            return frozenset({Module(f"{module}.{name}")})
        return found.meanings_of(name)

    def attribute_of_symbol(self, symbol: Symbol, name: str) -> None:
        if name not in known.METHODS and name not in known.SPECIAL:
            raise NotKnownPureError(f"it uses {symbol}.{name}, which is not known to be pure")
        self.attribute(name, called=False)

    def symbol(self, module: str, name: str) -> None:
        """Judge a reference of a pickle to a function or class of a module."""
        if module == "__main__":
            raise NotKnownPureError("it refers to a name of __main__ that was not shipped with it")
        first, *rest = name.split(".")
        if self.is_user_module(module):
            self._of_user_module(module, first)
        elif name.endswith("_deserialize_accumulator"):
            raise NotKnownPureError("it adds to an accumulator")
        elif not known.is_pure_in_pickles(module, first):
            raise NotKnownPureError(f"it uses {module}.{name}, which is not known to be pure")
        self._has_paths = self._has_paths or module.startswith("pathlib")
        for part in rest:
            self.attribute(part, called=True)

    # -- attributes of values ---------------------------------------------------------------------------------

    def attribute(self, name: str, called: bool) -> None:
        if name.startswith("__") and name.endswith("__"):
            if name not in known.SPECIAL:
                raise NotKnownPureError(f"it uses {name}")
        else:
            self._attributes[name] = self._attributes.get(name, False) or called

    def define(self, name: str) -> None:
        self._defined.add(name)

    def text(self, text: str) -> None:
        # Pandas and numpy take these for the time at which they read them.
        if text.strip().lower() in ("now", "today"):
            raise NotKnownPureError(f"it holds {text!r}, which may mean the time of the run")
        self._texts.add(text)

    def finish(self) -> None:
        """Judge the attributes, once all attributes of the user's objects have been read.

        Raises
        ------
        NotKnownPureError
            If one of them is not known to be pure.
        """
        for name, called in sorted(self._attributes.items()):
            of_path = self._has_paths and name in known.PATHS
            unknown = called and name not in known.METHODS and name not in self._defined
            if name in known.IMPURE or of_path or unknown:
                how = f"calls .{name}()" if called else f"uses .{name}"
                raise NotKnownPureError(f"it {how}, which is not known to be pure")
        if known.BY_TEXT.intersection(self._attributes):
            for text in sorted(known.IMPURE_BY_TEXT.intersection(self._texts)):
                raise NotKnownPureError(f"it holds {text!r}, by which pandas may call a method that is not pure")


class UserModule:
    """A module of the user's, as its file describes it."""

    def __init__(self, name: str, judge: Judge) -> None:
        self.name = name
        self.stamp: Stamp | None = None
        self._judge = judge
        self._statements: list[ast.stmt] = []
        self._lazy: dict[str, list[ast.stmt]] = {}
        self._bound: dict[str, set[Meaning]] = {}
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

    def _parse(self, spec: ModuleSpec) -> None:
        if not str(spec.origin).endswith(".py"):
            raise NotKnownPureError(f"the module {self.name} is not written in Python")
        try:
            tree = ast.parse(read_source(self.name, spec))
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
        around = self.name.rpartition(".")[0]
        if around:
            self._judge.module(around)
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
        found = set(self._bound.get(name, ()))
        for statement in self._lazy.get(name, ()):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                found |= self._imported(statement, name)
            else:
                found.add(None)
                if id(statement) not in self._read:
                    self._read.add(id(statement))
                    self._run(statement)
        if found:
            return frozenset(found)
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
    return "TYPE_CHECKING" in names or (isinstance(statement.test, ast.Compare) and "__name__" in names)
