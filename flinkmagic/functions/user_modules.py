"""Follows the sources of the modules that a user's function imports, from module to module.

A worker imports a module by name, so what the function does there is what the module's *file* says at that time.
Modules of the standard library and of installed packages do not change during a session and count by name and version;
every other module counts by its source. Comments and line numbers do not count: two sources are equal if Python's
parser makes the same tree from them.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.machinery
import os
import platform
import site
import sys
import sysconfig
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

_LIBRARIES = frozenset({"py4j", "pyspark"})
"""Packages that are libraries wherever they are: Spark's own distribution has them outside site-packages."""

_INSTALLED = frozenset({"site-packages", "dist-packages"})


class CannotCompareError(Exception):
    """Says which part of a plan cannot be compared with another run's. Users never see it: it only prevents a reuse."""


def library_version(module: str) -> str | None:
    """Return a library module's package version, empty if unknown; None if the module is the user's.

    It is the same whether the library has been imported or not: a function that imports one is the same function before
    and after its first call.
    """
    top = module.partition(".")[0]
    if top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return platform.python_version()
    if top in _LIBRARIES:
        return str(getattr(sys.modules.get(top), "__version__", ""))
    found = find_module(module) or find_module(top)
    if found is not None and found.origin is not None and _is_installed(Path(found.origin)):
        return _version_of_package(top)
    return None


@functools.cache
def _version_of_package(top: str) -> str:
    try:
        return metadata.version(top)
    except metadata.PackageNotFoundError:
        named = _distributions().get(top)
        return metadata.version(named[0]) if named else ""


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """Return the names of the installed packages, by those of the modules that they bring."""
    return metadata.packages_distributions()


def _is_installed(path: Path) -> bool:
    return bool(_INSTALLED.intersection(path.parts)) or any(map(path.is_relative_to, _folders_of_libraries()))


@functools.cache
def _folders_of_libraries() -> list[str]:
    paths = sysconfig.get_paths()
    return [paths["stdlib"], paths["platstdlib"], *site.getsitepackages(), site.getusersitepackages()]


def find_module(module: str) -> importlib.machinery.ModuleSpec | None:
    """Return the module's spec without importing anything (`importlib.util.find_spec` imports parent packages)."""
    search: list[str] | None = None
    spec = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        loaded = getattr(sys.modules.get(name), "__spec__", None)
        spec = loaded or importlib.machinery.PathFinder.find_spec(name, search)
        if spec is None:
            return None
        search = list(spec.submodule_search_locations or [])
    return spec


class _Parsed(NamedTuple):
    """What a source says."""

    digest: str
    imports: tuple[str, ...]
    """The absolute names of the modules that it imports, at its top level or anywhere else."""
    taken: tuple[str, ...]
    """What it takes from modules, each under the module's name: it may be a module, too, as in a package."""


_Stamp = tuple[int, ...]

_parsed: dict[tuple[str, str], tuple[_Stamp, _Parsed]] = {}
"""By file and package, what its source said, with the file's stamp: to parse a whole package takes seconds."""

_RECENT_NS = 2_000_000_000
"""A file that was changed so short a time ago may be changed once more without another stamp."""


class ModuleSources:
    """Digests of the user's modules, each looked at once; create a new one for each time of looking.

    Parameters
    ----------
    seen : dict of str to str, optional
        The session's memory, which is extended: what each module said when it was first read. Spark's Python workers
        serve many tasks, and keep a module as it was when they imported it. So once a module is edited, it is unknown
        which version computes rows from then on.
    """

    def __init__(self, seen: dict[str, str] | None = None) -> None:
        self._found: dict[str, tuple[str, list[str]]] = {}
        self._seen: dict[str, str] = {} if seen is None else seen

    def of(self, module: str) -> dict[str, str]:
        """Return what the sources of a module, and of all user modules that it leads to, say, by module.

        Raises
        ------
        CannotCompareError
            If a source cannot be read or followed, or was edited since the session first met it.
        """
        digests: dict[str, str] = {}
        open_ = [module]
        while open_:
            name = open_.pop()
            if name in digests:
                continue
            if name not in self._found:
                self._found[name] = self._look_at(name)
            digest, led_to = self._found[name]
            digests[name] = self._unedited(name, digest)
            open_ += led_to
        return digests

    def _unedited(self, module: str, digest: str) -> str:
        if self._seen.setdefault(module, digest) != digest:
            self._seen[module] = "edited"
            raise CannotCompareError(
                f"the module {module} was edited, and Spark's Python workers may still hold it as it was"
            )
        return digest

    def _look_at(self, module: str) -> tuple[str, list[str]]:
        """Return what a module says, and the modules that it leads to."""
        version = library_version(module)
        if version is not None:
            return f"library {version}", []
        spec = find_module(module)
        if spec is None:
            return "absent", []
        package = module.rpartition(".")[0]
        if spec.origin is None:
            return "namespace package", [package] if package else []
        parsed = _parsed_source(module, spec, module if spec.submodule_search_locations is not None else package)
        taken = (name for name in parsed.taken if find_module(name) is not None)
        return parsed.digest, [name for name in dict.fromkeys((package, *parsed.imports, *taken)) if name]


def _parsed_source(module: str, spec: importlib.machinery.ModuleSpec, base: str) -> _Parsed:
    """Return what a module's source says, parsed again only if its file has changed.

    Raises
    ------
    CannotCompareError
        If it cannot be read or parsed.
    """
    assert spec.origin is not None
    stamp = stamp_of(spec.origin)
    known = _parsed.get((spec.origin, base))
    if known is not None and known[0] == stamp:
        return known[1]
    source = read_source(module, spec)
    if not spec.origin.endswith(".py"):
        return _Parsed(hashlib.sha256(source).hexdigest(), (), ())
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise CannotCompareError(f"the module {module} cannot be parsed: {error}") from None
    found = _Parsed(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), *_imports(tree, base))
    if stamp is not None and time.time_ns() - max(stamp[:2]) > _RECENT_NS:
        _parsed[spec.origin, base] = stamp, found
    return found


def stamp_of(path: str) -> _Stamp | None:
    """Return what changes with a file: times of its contents and of its entry, length, inode; None if it is none."""
    try:
        there = os.stat(path)
    except OSError:  # in an archive, for example
        return None
    return there.st_mtime_ns, there.st_ctime_ns, there.st_size, there.st_ino


def read_source(module: str, spec: importlib.machinery.ModuleSpec) -> bytes:
    """Return the text of a module's file, which may lie in an archive.

    Raises
    ------
    CannotCompareError
        If it cannot be read.
    """
    assert spec.origin is not None
    get_data = getattr(spec.loader, "get_data", None)
    try:
        return bytes(get_data(spec.origin)) if get_data is not None else Path(spec.origin).read_bytes()
    except OSError as error:
        raise CannotCompareError(f"the source of the module {module} cannot be read: {error}") from None


def _imports(tree: ast.Module, base: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the modules that a source imports, and what it takes from modules (see `_Parsed`)."""
    imports: dict[str, None] = {}
    taken: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports.update((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(node.module or "", node.level, base)
            imports[origin] = None
            taken.update((f"{origin}.{alias.name}", None) for alias in node.names if alias.name != "*")
    return tuple(imports), tuple(taken)


def absolute(name: str, level: int, package: str) -> str:
    """Return the absolute name of an import that was written with `level` dots in a module of `package`."""
    if level == 0:
        return name
    above = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*above, name] if name else above)
