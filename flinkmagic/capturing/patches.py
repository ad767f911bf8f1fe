"""Puts hooks into PySpark's classes while something is captured, and takes them out again.

The hooks are the process's, the capture is one thread's: a hooked method asks whether *this* thread and context
captures, and is PySpark's own method where it does not. The first capture installs the hooks, the last one to end
puts the very objects back that were there.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import pyspark

from flinkmagic.capturing import hook_table, native_hooks
from flinkmagic.capturing.hooks import Hook

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

_recorder: ContextVar[Recorder | None] = ContextVar("flinkmagic_recorder", default=None)
_lock = threading.RLock()
_active: list[Recorder] = []
_installed: list[tuple[type, str, Any, Any]] = []
_made: dict[tuple[type, str], tuple[Any, Any]] = {}
_ABSENT = object()

# PySpark names the innermost frame outside its own folder as the user's in its errors: hooks must not be it.
_HOOK_FILE = os.path.join(os.path.dirname(pyspark.__file__), "flinkmagic_hook.py")
_OUR_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def activate(recorder: Recorder) -> None:
    """Let a recorder hear the calls of this thread and context."""
    with _lock:
        if not _active:
            try:
                _install()
            except BaseException:
                _uninstall()
                raise
        _active.append(recorder)
    recorder.token = _recorder.set(recorder)


def deactivate(recorder: Recorder) -> None:
    """End what `activate` began; the hooks go with the last recorder."""
    with contextlib.suppress(ValueError):  # ended in another context than begun, where it is not set
        _recorder.reset(recorder.token)
    with _lock:
        _active.remove(recorder)
        if not _active:
            _uninstall()


def listening() -> Recorder | None:
    """The recorder of a call that the user makes on the captured thread; None for calls that serve such a call."""
    recorder = _recorder.get()
    if recorder is None or recorder.depth or recorder.ended or recorder.thread != threading.get_ident():
        return None
    return recorder if recorder in _active else None


def _install() -> None:
    _hook(hook_table.entries())
    sys.meta_path.insert(0, _imports)


def _hook_imported(module: ModuleType) -> None:
    with _lock:
        if _active:
            _hook(native_hooks.entries_of(module))


_imports = native_hooks.Imports(_hook_imported)


def _hook(entries: Iterable[hook_table.Entry]) -> None:
    for owner, name, make in entries:
        before = owner.__dict__.get(name, _ABSENT)
        original = getattr(owner, name) if before is _ABSENT else before
        hooked = _hooked_once(owner, name, original, make)
        setattr(owner, name, hooked)
        _installed.append((owner, name, before, hooked))


def _hooked_once(owner: type, name: str, original: Any, make: hook_table.Make) -> Any:
    """What takes a method's place; made once for each that is found there, since a cell should begin at once."""
    known, hooked = _made.get((owner, name), (_ABSENT, None))
    if known is not original:
        if isinstance(original, property):
            hooked = _hooked_property(name, original, make)
        elif isinstance(owner, ModuleType):
            hooked = HookedName(owner, name, _hooked(make(name, original)))
        else:
            hooked = _hooked(make(name, original))
        _made[owner, name] = (original, hooked)
    return hooked


class HookedName:
    """Stands in a module for one of its functions or classes; pickled it is that one by its name.

    A function of the user's that names it may go to Spark's workers, and a name that he has imported while something
    was captured stays with him.
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


def _hooked_property(name: str, original: property, make: hook_table.Make) -> property:
    getter, setter = ((None if half is None else _hooked(make(name, half))) for half in (original.fget, original.fset))
    return property(getter, setter, original.fdel, original.__doc__)


def _uninstall() -> None:
    if _imports in sys.meta_path:
        sys.meta_path.remove(_imports)
    while _installed:
        owner, name, before, hooked = _installed.pop()
        if owner.__dict__.get(name) is not hooked:
            continue  # somebody has put his own in its place: ours is called by it, and does nothing any more
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _hooked(hook: Hook) -> Callable[..., Any]:
    original = hook.original

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        recorder = listening()
        if recorder is None or (hook.only_pending and not recorder.pending):
            return original(*args, **kwargs)
        recorder.depth += 1
        try:
            hook.before(recorder, args, kwargs)
            return hook.after(recorder, args, kwargs, original(*args, **kwargs))
        except Exception as error:
            trace = error.__traceback__
            error.__traceback__ = _without_ours(trace.tb_next if trace is not None else None)
            raise error
        finally:
            hook.finish(args)
            recorder.depth -= 1

    call.__code__ = call.__code__.replace(co_filename=_HOOK_FILE)
    return functools.wraps(original)(call)


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package: the user's line, then Spark's."""
    if trace is None:
        return None
    rest = _without_ours(trace.tb_next)
    if trace.tb_frame.f_code.co_filename.startswith(_OUR_FOLDER):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
