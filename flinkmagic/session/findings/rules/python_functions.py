"""A stage that spends most of its time in Python functions of single values or columns.

Source: Spark's metrics of Python workers ("time to run Python workers"; before 4.0 there are none); its guide to
functions of the user's.

Threshold: half of the stage's time, both without the start of Python workers, if Spark tells that apart; any, where
nothing is measured. And 10,000 rows.

Counter-example: a function over a few rows, which is slow by itself; `mapInPandas` and `applyInPandas`, whose authors
want code of their own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from flinkmagic.amounts import duration, magnitude
from flinkmagic.deployment import TaskRecord
from flinkmagic.display.findings import Finding
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.planning.python_callers import PYTHON_FUNCTIONS
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, VertexFacts, metric
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import argument_of_function, quoted

MOST = 0.5
MANY_ROWS = 10_000

_OF_COLUMNS = re.compile(r", 200$")
"""How Spark's text of an operator ends whose functions are those of `pandas_udf`."""


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        functions = [one for one in vertex.operators if one.kind in PYTHON_FUNCTIONS]
        if not functions or not vertex.run_ms:
            continue
        ran = [_part(vertex, _run_ms) * _ran_ms(one) for one in functions]
        is_known = any(ran)
        python_ms = min(vertex.run_ms, sum(ran)) if is_known else vertex.run_ms
        longest = functions[ran.index(max(ran))]
        rows = round(_part(vertex, _rows) * metric(longest.metrics, "pythonNumRowsReceived")) or vertex.rows_in
        start_ms = _part(vertex, _run_ms) * sum(one.start_of_python_ms for one in functions)
        if python_ms < MOST * (vertex.run_ms - start_ms) or 0 < rows < MANY_ROWS:
            continue
        beside = f", and their workers {duration(start_ms)} to start" if start_ms else ""
        took = f"Python functions take {duration(python_ms)} of the stage's {duration(vertex.run_ms)}{beside},"
        if not is_known:
            took = f"a stage of {duration(vertex.run_ms)} calls Python functions"
        is_by_row = _OF_COLUMNS.search(longest.text) is None
        yield RULE.finding(
            f"{took} for {magnitude(rows)} rows{', row by row' if is_by_row else ''}",
            vertex,
            longest,
            python_ms,
            "measured: the time of Python workers" if is_known else "estimated: at most the stage's time",
            "likely" if is_known and is_by_row else "possible",
            (_built_in(longest.code) or _by_row(longest.text)) if is_by_row else _BY_COLUMN,
        )


def _ran_ms(function: OperatorFacts) -> int:
    return metric(function.metrics, "pythonTotalTime") - function.start_of_python_ms


def _part(vertex: VertexFacts, of: Callable[[TaskRecord], int]) -> float:
    """Return which part of what an operator measured is that of the attempts that count: Spark adds up all that ended
    well, also those whose output was lost, or that a write has made again from its beginning.
    """
    if vertex.kind == "boundary":  # an attempt that is made again reads the rows which the one before it has kept
        return 1.0
    ended_well = [one for one in vertex.attempts if one.state is ExecutionState.FINISHED or one.reason == "Resubmitted"]
    every = sum(map(of, ended_well))
    return sum(map(of, vertex.tasks)) / every if every else 1.0


def _run_ms(task: TaskRecord) -> int:
    return task.run_ms or 0


def _rows(task: TaskRecord) -> int:
    return task.rows_in or 0


def _built_in(code: str) -> str:
    """Return the built-in that plainly does what the lambda function of a line does; empty if there is none."""
    try:
        nodes = list(ast.walk(ast.parse(code.strip())))
    except SyntaxError:  # a part of a statement
        return ""
    functions = [one for one in nodes if isinstance(one, ast.Lambda)]
    if len(functions) != 1 or len(functions[0].args.args) != 1:
        return ""
    column = argument_of_function(code) or "col"
    found = _expression(functions[0].body, functions[0].args.args[0].arg, column)
    return f"{found}  # does the same without Python" if found else ""


def _by_row(text: str) -> str:
    found = _ONE_COLUMN.search(text)
    column = quoted(found[1]) if found is not None else "col"
    built_in = f"F.upper({column}), F.regexp_extract({column}, ...), F.when(...)"
    return f"{built_in}  # a built-in; else @F.pandas_udf, for whole columns"


def _expression(body: ast.expr, argument: str, column: str) -> str:
    """Return a function's value as an expression of its column."""
    match body:
        case ast.Call(ast.Attribute(ast.Name(id), name), [], []) if id == argument and name in _METHODS:
            return f"F.{name}({column})"
        case ast.Call(
            ast.Attribute(ast.Name(id), "startswith" | "endswith" as name), [ast.Constant(str(text))], []
        ) if id == argument:
            return f"{column}.{name}({text!r})"
        case ast.Call(ast.Name(name), [ast.Name(id)], []) if id == argument and name in _OF_PYTHON:
            return _OF_PYTHON[name].format(column)
        case ast.Subscript(ast.Name(id), ast.Slice(None, ast.Constant(int(end)), None)) if id == argument and end > 0:
            return f"F.substring({column}, 1, {end})"
        case ast.BinOp(ast.Name(id), ast.Add() | ast.Sub() | ast.Mult(), ast.Constant(int() | float())) if (
            id == argument
        ):
            return ast.unparse(body).replace(argument, column, 1)
    return ""


_METHODS = frozenset({"lower", "upper"})
_OF_PYTHON = {"abs": "F.abs({})", "len": "F.length({})", "str": '{}.cast("string")'}
"""Of Python's built-in functions: of a text, ``len`` counts the same; of an array it would be ``F.size``."""
_ONE_COLUMN = re.compile(r"EvalPython \[[\w<>]+\((\w+)\)\], \[")
"""In Spark's text of an operator: a function of one column."""
_BY_COLUMN = "F.transform(...), F.aggregate(...)  # or a window, if they can do it; else this is where the time goes"


RULE = Rule("python-functions", _find)
