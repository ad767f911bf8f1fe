"""Splits SQL texts into parts before they are analysed: Spark parses them, ``java/SqlReader.java`` lists the parts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from flinkmagic.capturing.driver.capture_reader import as_json
from flinkmagic.capturing.driver.java_classes import CLASSES
from flinkmagic.jvm.java import elements, items, java_class, query_execution, scala_seq, session_state, simple_name

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_PARSER = "org.apache.spark.sql.catalyst.parser"
_ANALYSIS = "org.apache.spark.sql.catalyst.analysis"
_LEGACY_PARAMETERS = "spark.sql.legacy.parameterSubstitution.constantsOnly"


@dataclass(frozen=True)
class SqlNode:
    """A plan that is part of a parsed statement."""

    kind: str
    """The class's name, without the package."""
    is_statement: bool
    """Whether it is a command, or becomes one."""
    owner: int
    """The index of the node of the statement that it belongs to; -1 if it belongs to a query."""
    is_target: bool
    """Whether it is the table that this statement changes."""
    name: list[str] | None
    """The parts of its name."""
    plan: Any


def nodes_of(parsed: JavaObject) -> list[SqlNode]:
    """Return the plans of a parsed statement and of its subqueries, the statement itself first."""
    reader = CLASSES.shared_instance(SparkContext._gateway, "SqlReader")
    facts, plans = elements(reader.read(parsed))
    return [SqlNode(**fact, plan=plan) for fact, plan in zip(as_json(facts), elements(plans), strict=True)]


def parsed(spark: Any, text: str, arguments: Any = None) -> JavaObject:
    """Parse a statement as ``SparkSession.sql`` does, and bind its parameters.

    Parameters
    ----------
    arguments : JavaObject or mapping, optional
        What PySpark gives the Java session: an array of columns, or columns by name.

    Raises
    ------
    ParseException
        Spark's own.
    """
    parser, jvm = session_state(spark).sqlParser(), spark._jvm
    if not arguments:
        return parser.parsePlan(text)
    has_contexts = _has_contexts(jvm)
    expression = spark._jsparkSession.expression if has_contexts else lambda column: column.expr()
    is_named = isinstance(arguments, Mapping)
    named = arguments.items() if is_named else ((str(place), column) for place, column in enumerate(arguments))
    values = {name: expression(column) for name, column in named}
    if has_contexts:  # these take constants only; functions of constants become constants here, as in SparkSession.sql
        constants = spark._jsparkSession.resolveAndValidateParameters(jvm.PythonUtils.toScalaMap(values))
        values = {name: constants.apply(name) for name in values}
    if is_named:
        bound = jvm.PythonUtils.toScalaMap(values)
        context, query = f"{_PARSER}.NamedParameterContext", f"{_ANALYSIS}.NameParameterizedQuery"
    else:
        bound = scala_seq(jvm, list(values.values()))
        context, query = f"{_PARSER}.PositionalParameterContext", f"{_ANALYSIS}.PosParameterizedQuery"
    if not has_contexts:  # Spark 3.5 and 4.0 bind them during analysis
        return getattr(jvm, query).apply(parser.parsePlan(text), bound)
    plan = parser.parsePlanWithParameters(text, java_class(jvm, context)(bound))
    is_legacy = session_state(spark).conf().getConfString(_LEGACY_PARAMETERS, "false") == "true"
    return getattr(jvm, query).apply(plan, bound) if is_legacy else plan


def constant(spark: Any, expression: JavaObject) -> str | None:
    """Return the text of an expression of literals and session variables; None for any other expression."""
    state = session_state(spark)
    try:
        query = state.sqlParser().parsePlan(f"SELECT {expression.sql()} AS value")
        folded = query_execution(spark._jvm, state, query).optimizedPlan()
        (value,) = items(folded.expressions())
        literal = value.child()
        return str(literal.value()) if simple_name(literal) == "Literal" else None
    except (Py4JError, ValueError, AttributeError, TypeError):  # not an expression of one constant
        return None


@functools.lru_cache(maxsize=4)
def _has_contexts(jvm: Any) -> bool:
    return hasattr(java_class(jvm, f"{_PARSER}.PositionalParameterContext"), "_java_lang_class")
