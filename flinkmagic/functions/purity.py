"""Whether a pickled function is known to be pure: it sees and changes nothing but its arguments."""

from __future__ import annotations

import hashlib

from flinkmagic.functions.code_fingerprint import fingerprint
from flinkmagic.functions.user_modules import CannotCompareError

_MOST = 4096
_known: dict[bytes, str | None] = {}


def impurity(pickled: bytes) -> str | None:
    """Why a pickled function is not known to be pure; None where it is.

    Parameters
    ----------
    pickled : bytes
        What PySpark's ``PythonFunction.command()`` holds.
    """
    digest = hashlib.sha256(pickled).digest()
    if digest not in _known:
        if len(_known) >= _MOST:
            _known.clear()
        _known[digest] = _impurity(pickled)
    return _known[digest]


def _impurity(pickled: bytes) -> str | None:
    try:
        fingerprint(pickled)
    except CannotCompareError as why:
        return str(why)
    return None
