"""Hooks the functions of `native_readers` in the libraries that are imported, and notices what the cell imports."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.call_arguments import Args, Kwargs, argument
from flinkmagic.capturing.hooks.call_hooks import Entry, Watched
from flinkmagic.capturing.hooks.native_readers import NATIVE_CALLS, NATIVE_MODULES, Does, NativeCall
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.capturing.writes.targets import Source, Target

if TYPE_CHECKING:
    from flinkmagic.capturing.writes.captured_session import CapturedSession

_UNKNOWN = Effects(unknown=True, cause=Cause.FILE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_IN_MEMORY = frozenset({"", ":memory:"})


def is_native(name: str) -> bool:
    """Return whether a module is in the table."""
    return name in NATIVE_MODULES


def entries_of(module: ModuleType) -> Iterator[Entry]:
    """Yield the entries of one library; what this version of it does not have is left out."""
    for call in NATIVE_CALLS:
        if call.module == module.__name__:
            for name in call.names:
                *path, attribute = name.split(".")
                owner = getattr(module, path[0], None) if path else module
                if callable(getattr(owner, attribute, None)):
                    yield owner, attribute, functools.partial(Native, call=call)


class Native(Watched):
    """A call that opens files without Python."""

    def __init__(self, method: str, original: Callable[..., Any], call: NativeCall) -> None:
        super().__init__(method, original, lambda captured, args, kwargs: _effects(captured, call, args, kwargs))


def _effects(captured: CapturedSession, call: NativeCall, args: Args, kwargs: Kwargs) -> Effects:
    if call.paths is not None:
        value = call.paths(args[0])
        if value is None:
            return _UNKNOWN
    elif call.does is Does.ANYTHING:
        return _UNKNOWN
    else:
        value = argument(args, kwargs, call.position, call.keyword)
    if kwargs.get("filesystem") is not None and not _is_local(kwargs["filesystem"]):
        return _UNKNOWN
    targets = tuple(_targets(captured, value))
    reads = tuple(Source(path=target.path, pattern=True) for target in targets)
    if call.does is Does.READS:
        return Effects(reads, cause=Cause.FILE)
    return Effects(reads if call.does is Does.BOTH else (), targets, cause=Cause.FILE)


def _is_local(file_system: Any) -> bool:
    return "LocalFileSystem" in type(file_system).__name__


def _targets(captured: CapturedSession, value: Any) -> Iterator[Target]:
    """Return the places that a path, or a list of paths, names; an open file is no path: its opening was reported."""
    if isinstance(value, (str, bytes, os.PathLike)):
        text = os.fsdecode(value)
        if text not in _IN_MEMORY:
            is_uri = _SCHEME.match(text) is not None
            yield captured.resolver.target(text if is_uri else "file:" + os.path.abspath(text))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _targets(captured, item)


class HookedName:
    """Replaces a function or class in its module; it is pickled as the original, by name.

    A user's function that names it may go to Spark's workers, and a name imported during a capture stays bound after
    it.
    """

    def __init__(self, module: ModuleType, name: str, call: Callable[..., Any]) -> None:
        self._module, self._name = module, name
        self.__wrapped__: Any = call.__wrapped__  # type: ignore[attr-defined]
        self.__doc__ = call.__doc__
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __reduce__(self) -> Any:
        return getattr, (self._module, self._name)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.__wrapped__)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self.__wrapped__)

    def __mro_entries__(self, bases: Any) -> tuple[Any, ...]:
        return (self.__wrapped__,)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class Imports(MetaPathFinder):
    """Reports libraries that are imported while something is captured.

    Parameters
    ----------
    wanted : callable
        Called with a module's name; returns whether to report it.
    loaded : callable
        Called with the module when its code has run.
    """

    def __init__(self, wanted: Callable[[str], bool], loaded: Callable[[ModuleType], None]) -> None:
        self._wanted = wanted
        self._loaded = loaded
        self._finding: set[str] = set()

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find the module as the other finders do, and hook its loader."""
        if name in self._finding or not self._wanted(name):
            return None
        self._finding.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding.discard(name)
        if spec is not None and spec.loader is not None:
            self._listen(spec.loader)
        return spec

    def _listen(self, loader: Any) -> None:
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            run(module)
            self._loaded(module)

        loader.exec_module = exec_module
