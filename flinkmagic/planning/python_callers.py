"""Finds the calls in which the user calls the functions that an operator runs in Python workers.

Such an operator makes an attribute of its own, which no call names: it is below a projection, and Spark collapses
projections. That of a later call, which asks for other columns, may then be the nearest one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any

from flinkmagic.capturing.lineage import RecordedCall

PYTHON_FUNCTIONS = frozenset({"BatchEvalPythonExec", "ArrowEvalPythonExec"})
"""Spark's operators that call functions of single rows, or of whole columns, in Python workers."""

_LAMBDA = "<lambda>"
_NAME = re.compile(r"[\w<>.]+$")


def callers(text: str, calls: Iterable[RecordedCall], namespace: Mapping[str, Any]) -> tuple[RecordedCall, ...]:
    """Return the calls of an operator's Python functions; none if a function may be that of several lines.

    Parameters
    ----------
    text : str
        Spark's text of the operator, with expression ids.
    namespace : mapping
        The user's names: a function of the user's may have another one than what it was made of.
    """
    known = list(calls)
    found: dict[int, RecordedCall] = {}
    for function in set(_functions(text)):
        pattern = _called(function, namespace)
        of_it = {call.index: call for call in known if pattern.search(call.text)}
        if len({(call.location.filename, call.location.line) for call in of_it.values()}) != 1:
            return ()
        found |= of_it
    return tuple(found[index] for index in sorted(found))


def _functions(text: str) -> Iterator[str]:
    """Yield the names of the functions in an operator's text: ``f(g(id#0L)#7)#8, ...``: a Python function has an id."""
    opened = []
    for place, sign in enumerate(text):
        if sign == "(":
            opened.append(place)
        elif sign == ")" and opened:
            name = _NAME.search(text, 0, opened.pop())
            if name is not None and text[place + 1 : place + 2] == "#":
                yield name[0]


def _called(function: str, namespace: Mapping[str, Any]) -> re.Pattern[str]:
    """Return how the text of a call looks in which a function is called, or made and called."""
    names = [
        name
        for name, value in namespace.items()
        if isinstance(value, FunctionType) and "evalType" in vars(value) and value.__name__ == function
    ]
    made = "lambda" if function == _LAMBDA else re.escape(function)
    ways = [rf"\b(?:pandas_)?udf\(\s*{made}\b"]
    ways += [rf"(?<![\w.]){re.escape(name)}\(" for name in (*names, function) if name != _LAMBDA]
    return re.compile("|".join(ways))
