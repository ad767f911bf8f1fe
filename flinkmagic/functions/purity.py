"""Decides whether a pickled function is known to be pure: it sees and changes nothing but its arguments.

A function is known to be pure if all that it refers to is: names in `known`'s tables, and the user's own functions and
classes for which the same is true, whether the pickle includes them or their modules are found. It is read
(`code_references`), not run. A false negative costs a computation; a false positive would cost a wrong result.

Only what a function does by itself counts. An edited broadcast variable or module makes a function a different one, but
no less pure: that is the fingerprint's concern.
"""

from __future__ import annotations

import hashlib

from flinkmagic.functions.code_references import NotKnownPureError
from flinkmagic.functions.inert_pickle import read_pickle
from flinkmagic.functions.judge import Judge, Stamp, stamp_of
from flinkmagic.functions.pickle_purity import PickleReader
from flinkmagic.functions.user_modules import CannotCompareError

_MOST = 4096
_known: dict[bytes, tuple[str | None, tuple[Stamp, ...]]] = {}
"""The answer by the digest of a pickle, with the files of the user's modules that it was read from."""


def impurity(pickled: bytes) -> str | None:
    """Return why a function that PySpark pickled (``PythonFunction.command()``) is not known to be pure; None if it is.

    Sources of the user's modules are read whenever they change.
    """
    digest = hashlib.sha256(pickled).digest()
    answer = _known.get(digest)
    if answer is None or any(stamp_of(stamp[0]) != stamp for stamp in answer[1]):
        if len(_known) >= _MOST:
            _known.clear()
        answer = _known[digest] = _judged(pickled)
    return answer[0]


def _judged(pickled: bytes) -> tuple[str | None, tuple[Stamp, ...]]:
    judge = Judge()
    reason = None
    try:
        PickleReader(judge, *read_pickle(pickled)).read()
        judge.finish()
    except (NotKnownPureError, CannotCompareError) as why:
        reason = str(why)
    except RecursionError:
        reason = "it is nested too deeply"
    return reason, judge.stamps()
