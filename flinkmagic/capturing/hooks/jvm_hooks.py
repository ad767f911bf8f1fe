"""Hooks users' own calls of the JVM: through ``sc._jvm``, ``sc._jsc``, ``df._jdf`` and their results.

`JavaMember` calls all Java methods, static ones too, and `JavaClass` all constructors. PySpark calls them all the time;
a call is the user's if the frame that makes it is not PySpark's, py4j's or ours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from py4j.java_collections import JavaArray
from py4j.java_gateway import JavaClass, JavaMember, JavaObject
from py4j.protocol import STATIC_PREFIX, Py4JError

from flinkmagic.capturing.call_arguments import Args, Kwargs
from flinkmagic.capturing.driver.capture_reader import java_types
from flinkmagic.capturing.driver.impurity import impure_reason
from flinkmagic.capturing.hooks.call_hooks import Entry, Hook
from flinkmagic.capturing.hooks.java_calls import (
    CONFIGURATION,
    CONSTRUCTOR,
    FILE_CHANGES,
    FILE_READS,
    FRAME_ACTIONS,
    HANDLES,
    SETTINGS_CHANGED,
    WRITE_SETTINGS,
    is_harmless,
)
from flinkmagic.capturing.source_code.source_reader import is_ours
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.capturing.writes.targets import Source, Target, resolve_uri, sources_of

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

_UNKNOWN = Effects(unknown=True, cause=Cause.JVM)
_HARMLESS = Effects(cause=Cause.JVM)
_EFFECTS = "_flinkmagic_effects"
_DATASET = "org.apache.spark.sql.Dataset"
_FILE_SYSTEM = "org.apache.hadoop.fs.FileSystem"


def entries() -> Iterator[Entry]:
    """Yield the methods and the hook factory of each."""
    yield JavaMember, "__call__", JavaCall
    yield JavaClass, "__call__", JavaCall


class JavaCall(Hook):
    """A call of a Java method or constructor by the user; the hook ignores PySpark's own."""

    only_pending = True

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if not is_ours(sys._getframe(2).f_code.co_filename):
            recorder.settle(effects_of(args[0], args[1:]))

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        """Remember which file an open file is."""
        if isinstance(result, JavaObject) and not is_ours(sys._getframe(2).f_code.co_filename):
            effects = _file_effects(args[0], args[1:])
            if effects is not None and not effects.unknown:
                vars(result)[_EFFECTS] = effects
        return result


def effects_of(callee: Any, args: Args) -> Effects:
    """Return what a call of a Java method or constructor reads and changes."""
    types, method = _types(callee), _method(callee)
    if is_harmless(types, method) or (CONFIGURATION in types and _is_of_writes(callee, args)):
        return _HARMLESS
    effects = _file_effects(callee, args)
    if effects is not None:
        return effects
    if _DATASET in types and method in FRAME_ACTIONS:
        plan = callee.container.queryExecution().analyzed()
        return Effects(sources_of(plan), (), impure_reason(plan) is not None, fresh=False, cause=Cause.JVM)
    return _UNKNOWN


def _is_of_writes(callee: Any, args: Args) -> bool:
    """Return whether a call changes a Hadoop setting of which pending writes have their own: `SessionSnapshot.hadoop`.

    A setting that was not set at all on a write's line cannot be restored, unless it is a truth value.
    """
    if _method(callee) not in SETTINGS_CHANGED or not args or not str(args[0]).startswith(WRITE_SETTINGS):
        return False
    is_truth = len(args) > 1 and str(args[1]).lower() in ("true", "false")
    return _method(callee) == "unset" or is_truth or callee.container.get(args[0]) is not None


def _method(callee: Any) -> str:
    return callee.name if isinstance(callee, JavaMember) else CONSTRUCTOR


def _types(callee: Any) -> tuple[str, ...]:
    if isinstance(callee, JavaClass):
        return (callee._fqn,)
    if callee.target_id.startswith(STATIC_PREFIX):
        return (callee.target_id[len(STATIC_PREFIX) :],)
    return java_types(callee.container)


def _file_effects(callee: Any, args: Args) -> Effects | None:
    """Return what a call of Hadoop's FileSystem, or on a file that it opened, touches; None for any other call."""
    types, method = _types(callee), _method(callee)
    if _FILE_SYSTEM in types and isinstance(callee.container, JavaObject):
        return _file_system_effects(callee.container, method, args)
    if not HANDLES.isdisjoint(types):
        used = [callee.container if isinstance(callee, JavaMember) else None, *args]
        known = [vars(value)[_EFFECTS] for value in used if isinstance(value, JavaObject) and _EFFECTS in vars(value)]
        return _together(known) if known else _UNKNOWN
    return None


def _together(effects: Sequence[Effects]) -> Effects:
    reads = dict.fromkeys(source for one in effects for source in one.reads)
    changes = dict.fromkeys(target for one in effects for target in one.changes)
    return Effects(tuple(reads), tuple(changes), cause=Cause.JVM)


def _file_system_effects(files: Any, method: str, args: Args) -> Effects | None:
    if method not in FILE_READS and method not in FILE_CHANGES:
        return None
    paths = [_qualified(files, path) for path in _paths(args)]
    if not paths:
        return _UNKNOWN
    if method in FILE_READS:
        reads = tuple(Source(path=resolve_uri(path), pattern=method == "globStatus") for path in paths)
        return Effects(reads, cause=Cause.JVM)
    return Effects(changes=tuple(Target(path=resolve_uri(path)) for path in paths), cause=Cause.JVM)


def _paths(values: Iterable[Any]) -> Iterator[Any]:
    """Return the Java paths among arguments, also those in arrays and those of listed files."""
    for value in values:
        if isinstance(value, JavaArray):
            yield from _paths(value)
        elif isinstance(value, JavaObject):
            types = java_types(value)
            if "org.apache.hadoop.fs.Path" in types:
                yield value
            elif "org.apache.hadoop.fs.FileStatus" in types:
                yield value.getPath()


def _qualified(files: Any, path: Any) -> str:
    try:
        return str(files.makeQualified(path).toString())
    except Py4JError:  # the path of another file system: copies between two have such
        return str(path.toString())
