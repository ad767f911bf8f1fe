"""Puts hooks into PySpark's classes while something is captured, and removes them again.

The hooks belong to the process, a capture to a cell: a hooked method asks whether *this* thread and context captures
(`current.listening`), and calls PySpark's own method if not. The first capture installs the hooks, and the last one to
end restores the original objects.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextvars import Token
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import pyspark

from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.hooks import audit, hook_table, native_hooks
from flinkmagic.capturing.hooks.call_hooks import Entry, Hook, JavaHalf, Make
from flinkmagic.capturing.hooks.current_capture import (
    HOOK_FILE,
    active,
    as_pysparks,
    calling_the_user,
    listening,
    recording,
)
from flinkmagic.capturing.source_code.code_files import CAPTURING, FLINKMAGIC
from flinkmagic.capturing.writes.real_paths import forget

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

_lock = threading.RLock()
_installed: list[tuple[type, str, Any, Any]] = []
_made: dict[tuple[type, str], tuple[Any, Any]] = {}
_ABSENT = object()

_FRAME_FILES = tuple(
    os.path.join(os.path.dirname(pyspark.__file__), "sql", *parts)
    for parts in (("dataframe.py",), ("classic", "dataframe.py"))
)
"""The files of a DataFrame's own methods, in 3.5 and 4.x."""
_LEARNING = tuple(os.path.join(os.path.dirname(pyspark.__file__), name) + os.sep for name in ("ml", "mllib"))


def activate(recorder: Recorder) -> Token[Any]:
    """Make a recorder note the calls of this thread and context; return a token that ends it (see `deactivate`)."""
    with _lock:
        if not active:
            try:
                _install()
            except BaseException:
                _uninstall()
                raise
        active.append(recorder)
    return recording.set(recorder)


def deactivate(recorder: Recorder, token: Token[Any]) -> None:
    """End what `activate` began; the hooks are removed with the last recorder."""
    with contextlib.suppress(ValueError):  # ended in a context other than the one it began in, where it is not set
        recording.reset(token)
    with _lock:
        active.remove(recorder)
        if not active:
            _uninstall()


def _install() -> None:
    audit.install()
    forget()
    _hook(hook_table.entries())
    sys.meta_path.insert(0, _imports)


def _hook_imported(module: ModuleType) -> None:
    with _lock:
        if active:
            _hook(hook_table.entries_of(module))


_imports = native_hooks.Imports(hook_table.is_hooked_when_imported, _hook_imported)


def _hook(entries: Iterable[Entry]) -> None:
    for owner, name, make in entries:
        before = owner.__dict__.get(name, _ABSENT)
        original = getattr(owner, name, None) if before is _ABSENT else before
        hooked = _hooked_once(owner, name, original, make)
        setattr(owner, name, hooked)
        _installed.append((owner, name, before, hooked))


def _hooked_once(owner: type, name: str, original: Any, make: Make) -> Any:
    """Return a method's replacement, made once for each original method so that cells begin without delay."""
    known, hooked = _made.get((owner, name), (_ABSENT, None))
    if known is not original:
        hooked = _replacement(owner, name, original, make)
        _made[owner, name] = (original, hooked)
    return hooked


def _replacement(owner: type, name: str, original: Any, make: Make) -> Any:
    if isinstance(original, property):
        getter = _hooked(make(name, original.fget))
        setter = None if original.fset is None else _hooked(make(name, original.fset))
        return property(getter, setter, original.fdel, original.__doc__)
    if isinstance(original, functools.cached_property):
        cached = functools.cached_property(_hooked(make(name, original.func)))
        cached.__set_name__(owner, str(original.attrname))
        return cached
    hook = make(name, original)
    hooked: Any = _JavaHalf(hook) if isinstance(hook, JavaHalf) else _hooked(hook)
    if isinstance(hook, native_hooks.Native) and isinstance(owner, ModuleType):
        hooked = native_hooks.HookedName(owner, name, hooked)
    hook.made(hooked)
    return hooked


def _uninstall() -> None:
    if _imports in sys.meta_path:
        sys.meta_path.remove(_imports)
    while _installed:
        owner, name, before, hooked = _installed.pop()
        if owner.__dict__.get(name) is not hooked:
            continue  # other code has put its own in our hook's place: it calls ours, which now does nothing
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _hooked(hook: Hook) -> Callable[..., Any]:
    original = hook.original

    @as_pysparks
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        recorder = listening()
        if recorder is None or (hook.only_pending and not recorder.pending):
            return original(*args, **kwargs)
        with recorder.threads.serving():
            try:
                hook.before(recorder, args, kwargs)
                given, named = hook.arguments(recorder, args, kwargs)
                with calling_the_user(recorder if hook.runs_users_code else None):
                    result = hook.call(recorder, given, named)
                return hook.after(recorder, args, kwargs, result)
            except Exception as error:
                trace = error.__traceback__
                error.__traceback__ = without_ours(trace.tb_next if trace is not None else None)
                recorder.listener.raised(error)
                raise error
            except KeyboardInterrupt as interrupt:
                if recorder.mode is CaptureMode.LINES:  # otherwise the magic that captures shows it (`captured_cell`)
                    interrupt.__traceback__ = None  # what we wait in is not what the user waits for
                recorder.listener.raised(interrupt)
                raise interrupt
            finally:
                hook.finish(args)

    return functools.wraps(original)(call)


def without_ours(trace: TracebackType | None, *, with_sparks: bool = True) -> TracebackType | None:
    """Return a traceback without the frames of this package: the user's line, then Spark's.

    Parameters
    ----------
    with_sparks : bool
        Else all that is below the first of ours is left out.
    """
    if trace is None:
        return None
    filename = trace.tb_frame.f_code.co_filename
    if filename.startswith(FLINKMAGIC) and not with_sparks:
        return None
    rest = without_ours(trace.tb_next, with_sparks=with_sparks)
    if filename.startswith((FLINKMAGIC, HOOK_FILE)):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


class _JavaHalf:
    """`DataFrame._jdf`: code outside a DataFrame's own methods that asks for it is handed the DataFrame.

    Examples are `fit` of an estimator (even one that the cell has only just imported), ``F.broadcast``, a writer,
    another library, and the user's own calls of the JVM. Machine learning may compute on what it is handed: nothing
    in ``pyspark.ml.stat``, for example, is a method that could be hooked.
    """

    def __init__(self, hook: JavaHalf) -> None:
        self._hook = hook
        self._looks = (CAPTURING, HOOK_FILE, *_FRAME_FILES)

    def __get__(self, df: Any, owner: type | None = None) -> Any:
        if df is None:
            return self
        recorder = listening()
        asking = sys._getframe(1).f_code.co_filename
        if recorder is not None and not asking.startswith(self._looks):
            self._hook.before(recorder, (df,), {})
            if asking.startswith(_LEARNING):
                with recorder.threads.serving():
                    self._hook.computed(recorder, df)
        try:
            return df.__dict__["_jdf"]
        except KeyError:
            raise AttributeError("_jdf") from None

    def __set__(self, df: Any, java_half: Any) -> None:
        df.__dict__["_jdf"] = java_half

    def __delete__(self, df: Any) -> None:
        del df.__dict__["_jdf"]
