"""Describes in a few words what a physical operator of a SQL text does, and which tables it reads.

A text is one call of the user's for all of its operators: its first words would give all of them the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flinkmagic.amounts import cut
from flinkmagic.planning.plan_reader import CACHED_SCAN, NAME_OF_RUN, REUSED_EXCHANGE, PlanNode

EXPR_ID = re.compile(r"#\d+L?")
"""Of an expression, in Spark's text of an operator."""
_LOCATION = re.compile(r"Location: \w+ ?\([^)]*\)\[([^\],]+)")
_SCAN = re.compile(r"Scan (\S+) ?(.*)")
_IN_MEMORY = "Scan In-memory table "
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_JOIN = re.compile(r"(Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi|LeftAnti|ExistenceJoin)\b")
_GROUPED = re.compile(r"keys=\[(.*?)\], functions=\[(.*?)\]")
_FIRST = re.compile(r"limit=(\d+).*?orderBy=\[(.*?)\]")
_SORT_WORDS = re.compile(r" (?:ASC|NULLS (?:FIRST|LAST))\b")
_CATALOG = re.compile(r"^spark_catalog\.(?:default\.)?")
_KEYS = re.compile(r"(?:hash|range)partitioning\((.*), \d+\)")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_MOST_TABLES = 3
_MOST_OPERATORS = 300
"""So many are looked at for the tables of one operator."""
_MOST_COLUMNS = 60
"""How many characters of column names are shown."""

_WORDS = {
    "FilterExec": "filter",
    "BroadcastNestedLoopJoinExec": "join all with all",
    "CartesianProductExec": "join all with all",
    "WindowExec": "window",
    "WindowGroupLimitExec": "window",
    "UnionExec": "union",
    "ExpandExec": "expand",
    "GenerateExec": "explode",
    "SampleExec": "sample",
    "GlobalLimitExec": "limit",
    "LocalLimitExec": "limit",
    "CollectLimitExec": "limit",
}
_AGGREGATES = frozenset({"HashAggregateExec", "SortAggregateExec", "ObjectHashAggregateExec"})
_JOINS = frozenset({"SortMergeJoinExec", "ShuffledHashJoinExec", "BroadcastHashJoinExec"})


def source_name(node: PlanNode) -> str:
    """Return a short name for a leaf: ``parquet flights``, ``Range``."""
    file_format, table = _format_and_table(node)
    return f"{file_format} {table}".strip()


def does(node: PlanNode) -> str:
    """Return what an operator does: ``filter``, ``join on a = b``; empty if readers do not care."""
    text = EXPR_ID.sub("", node.text)
    if not node.children:
        return "" if node.kind == REUSED_EXCHANGE else "scan"
    if node.kind in _JOINS:
        return _join(text)
    if node.kind in _AGGREGATES:
        return _aggregate(text)
    if node.kind == "SortExec":
        keys = _BRACKETS.search(text)
        return f"sort by {_columns(keys[1])}" if keys else "sort"
    if node.kind == "TakeOrderedAndProjectExec":
        first = _FIRST.search(text)
        return f"first {first[1]} by {_columns(first[2])}" if first else "limit"
    return _WORDS.get(node.kind, "")


def tables(node: PlanNode) -> str:
    """Return the tables and files that an operator reads in its own stage, else those behind its shuffles."""
    found = list(dict.fromkeys(_tables(node, beyond=False))) or list(dict.fromkeys(_tables(node, beyond=True)))
    more = ", …" if len(found) > _MOST_TABLES else ""
    return ", ".join(found[:_MOST_TABLES]) + more


def keys_of(exchange: PlanNode) -> str:
    """Return the columns by which an exchange distributes rows; empty if there are none."""
    keys = _KEYS.search(EXPR_ID.sub("", exchange.text))
    return _columns(keys[1]) if keys else ""


def _tables(top: PlanNode, *, beyond: bool) -> Iterator[str]:
    """Yield the tables below an operator; plans may be deeper than Python's stack, and than anyone reads."""
    waiting = [top]
    for _ in range(_MOST_OPERATORS):
        if not waiting:
            return
        node = waiting.pop()
        if node.is_exchange and not beyond:
            continue
        if node.kind == REUSED_EXCHANGE and node.inside is not None:
            waiting.append(node.inside)
        elif not node.children and node.kind != REUSED_EXCHANGE:
            file_format, table = _format_and_table(node)
            yield _CATALOG.sub("", NAME_OF_RUN.sub("", table)) or file_format
        waiting += reversed(node.children)


def _format_and_table(node: PlanNode) -> tuple[str, str]:
    if node.kind == CACHED_SCAN and node.name.startswith(_IN_MEMORY):
        return _IN_MEMORY.removeprefix("Scan ").strip(), node.name.removeprefix(_IN_MEMORY)
    scan = _SCAN.match(node.name)
    if scan is None:
        return node.name, ""
    table = scan[2].strip()
    if not table:
        location = _LOCATION.search(node.text)
        table = location[1].rstrip("/").rpartition("/")[2] if location else ""
    return scan[1], table


def _join(text: str) -> str:
    kind = _JOIN.search(text)
    words = "" if kind is None or kind[1] in ("Inner", "Cross") else _CAMEL.sub(" ", kind[1]).lower() + " "
    words = words.replace("existence join ", "existence ") + "join"
    sides = [side.split(", ") for side in _BRACKETS.findall(text)[:2]]
    if len(sides) < 2:
        return words
    pairs = [one if one == other else f"{one} = {other}" for one, other in zip(*sides, strict=False)]
    return f"{words} on {_columns(', '.join(pairs))}"


def _aggregate(text: str) -> str:
    found = _GROUPED.search(text)
    if found is None:
        return "aggregate"
    keys, functions = found[1], found[2]
    if not functions:
        return f"distinct {_columns(keys)}"
    return f"aggregate by {_columns(keys)}" if keys else "aggregate"


def _columns(text: str) -> str:
    return cut(_SORT_WORDS.sub("", text), _MOST_COLUMNS)
