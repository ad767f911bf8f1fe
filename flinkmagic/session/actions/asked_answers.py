"""Answers an action with the answer of an equal earlier one, without running it.

1. An answer is found by the query of the DataFrame as it is analysed (`ResultKeys.of_answer`), the action's name and
   arguments, and what of this process shapes the answer. Neither the DataFrame nor the cell matter.
2. It is given only if all files that the query reads are what they were.
3. What was answered is kept if the key is still the same then, and if it is small (`retained_answers`).
4. An action that is called for its effects is always carried out. So is one whose query is observed, or is followed by
   a query listener; or would fill a cache of the user's, unless another kernel has answered it: this one then has the
   cache filled by the first action that needs it.
5. If something of ours fails here, the action is carried out, and a line says so, once for each SparkContext.
6. With a durable store, what is kept is also stored, by a key that holds in later processes (`durable_keys`), and what
   is not kept is looked for there. It is made with the schema of this process's query, and is then kept.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flinkmagic.display.printable import lines_visible
from flinkmagic.errors.actions import CACHE_NOT_FILLED, not_known
from flinkmagic.errors.base import is_from_signal
from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.jvm.java import execution_of
from flinkmagic.reuse.durable_keys import durable_keys
from flinkmagic.reuse.durable_store import KERNEL, DurableEntry
from flinkmagic.reuse.result_keys import NoKey, ResultKey, ResultKeys
from flinkmagic.reuse.retained_answers import retained_answers
from flinkmagic.reuse.stored_answers import FRAME, ROWS, NotExactError, read, written
from flinkmagic.session.actions.action_kinds import PlainCallError, action_kind, arguments

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql.types import StructType

    from flinkmagic.capturing.capture_listener import ActionCall
    from flinkmagic.reuse.durable_store import DurableStore
    from flinkmagic.reuse.retained_answers import RetainedAnswer

_LOG = logging.getLogger(__name__)

_PANDAS_OPTIONS = ("future.infer_string", "mode.copy_on_write", "mode.string_storage")
"""The options that shape the columns of a pandas frame."""


class AskedAnswer:
    """The answer that an action asks for, by the key of the DataFrame's rows; made by `asked`."""

    def __init__(self, call: ActionCall, keys: ResultKeys, rows: ResultKey, durable: DurableStore | None) -> None:
        self._store, self._durable = retained_answers(call.df.sparkSession.sparkContext), durable
        self._keys, self._rows, self._key = keys, rows, rows.digest
        self._shown: list[str] = []
        self._asked_at = time.time()
        self.call = replace(call, original=self._showing(call.original)) if call.method == "show" else call
        """The action to run if no answer is known."""
        kept = self._store.find(self._key) or self._stored()
        may_give = kept is not None and (not rows.fills_cache or kept.kernel != KERNEL)
        self.known = kept if may_give and not keys.changed_file(rows.files) else None
        """What was answered before; None if that is not known, or no longer right."""
        self.note = CACHE_NOT_FILLED if rows.fills_cache else ""
        """What the user should know of an answer that is given again."""

    def give(self) -> Any:
        """Answer as before."""
        assert self.known is not None
        self._store.use(self.known)
        answer = self.known.value()
        if self.call.method != "show":
            return answer
        print(answer)
        return None

    def keep(self, answer: Any, seconds: float) -> None:
        """Keep an answer that took the action so many seconds (rule 3)."""
        try:
            if self.call.method == "show":
                answer = self._shown[-1]
            again = asked(self.call)
            if again is not None and again._key == self._key and not again._keys.changed_file(again._rows.files):
                kept = self._store.add(self._key, self.call.text, answer, seconds)
                durable = self._durable
                if kept is not None and durable is not None and self._keys.settled(self._rows, self._asked_at):
                    self._store_later(kept, durable)
        except Exception as error:
            if is_from_signal(error):
                raise
            say_not_known(self.call, error)

    def _stored(self) -> RetainedAnswer | None:
        """Return what another process has stored, which is kept from now on."""
        if self._durable is None:
            return None
        key = self._durable_key()
        entry = self._durable.find(key) if key is not None else None
        if entry is None:
            return None
        try:
            answer = read(entry.content, self.call.method, self._schema)
        except NotExactError as error:
            self._durable.drop_damaged(entry.key, error)
            return None
        kept = self._store.add(self._key, self.call.text, answer, entry.seconds, entry)
        if kept is not None:
            kept.stored_at = self._durable.path(entry.key)
        return kept

    def _store_later(self, kept: RetainedAnswer, durable: DurableStore) -> None:
        """Let an answer that was just computed be stored; the copy that is kept is this process's own."""
        key, method, schema = self._durable_key(), self.call.method, self._schema
        if key is None:
            return

        def make() -> DurableEntry | None:
            try:
                content = written(kept.value(), method, schema)
            except NotExactError as reason:
                _LOG.debug("%s is not stored: %s", kept.what, reason)
                return None
            return DurableEntry(key, kept.what, kept.seconds, kept.made_at, content)

        durable.store_later(make, kept.seconds, lambda: setattr(kept, "stored_at", durable.path(key)))

    def _durable_key(self) -> str | None:
        return durable_keys(self.call.df.sparkSession.sparkContext).of(self._rows)

    @property
    def _schema(self) -> StructType | None:
        return self.call.df.schema if self.call.method in ROWS or self.call.method == FRAME else None

    def _showing(self, original: Any) -> Any:
        """Wrap `show` so that what it prints is noted."""

        @functools.wraps(original)
        def show(df: Any, *args: Any, **kwargs: Any) -> None:
            self._shown.append(df._show_string(*args, **kwargs))
            print(self._shown[-1])

        return show


def asked(call: ActionCall, durable: DurableStore | None = None) -> AskedAnswer | None:
    """Return the answer that an action asks for; None if it has no key."""
    kind = action_kind(call.method)
    if kind is None or not kind.is_answered_again:
        return None
    if call.method == "show" and not hasattr(call.df, "_show_string"):
        return None
    text = _text_of_arguments(call)
    if text is None:
        return None
    keys = ResultKeys(call.df.sparkSession.sparkContext)
    rows = keys.of_answer(execution_of(call.df), call.method, text, *_shaped_by(call.method))
    if isinstance(rows, NoKey):
        _LOG.debug("the answer of %s has no key: %s", call.text, rows.reason)
        return None
    return AskedAnswer(call, keys, rows, durable)


def say_not_known(call: ActionCall, error: Exception) -> None:
    """Tell the user, once for each SparkContext, that an answer was not looked for, or not kept."""
    told = _told(call.df.sparkSession.sparkContext)
    if not told:
        told.append(not_known(call.text, str(call.location), error))
        print(lines_visible(told[0]), file=sys.stderr)


@kept_for_context
def _told(sc: SparkContext) -> list[str]:
    """Return what `say_not_known` has told the user of a SparkContext."""
    return []


def _text_of_arguments(call: ActionCall) -> str | None:
    """Return the arguments of a call in a form that is equal for equal calls; None if there is no such form."""
    try:
        _, *values = arguments(call).values()
    except PlainCallError:
        return None
    return repr(values) if _is_plain(values) else None


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    return type(value) in (bool, float, int, str, type(None))


def _shaped_by(method: str) -> Sequence[str]:
    """Return what in this process shapes an answer: Spark's timestamps become Python's local time."""
    zone = [os.environ.get("TZ", ""), *time.tzname, str(time.timezone)]
    if method != "toPandas":
        return zone
    try:
        import pandas  # as the action is about to
    except ImportError:  # which the action says
        return zone
    known = pandas.describe_option(_print_desc=False)
    return [*zone, *(str(pandas.get_option(one)) for one in _PANDAS_OPTIONS if f"{one} " in known)]
