"""Finds arguments of a call, which may be given by position or by name, alone or in lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

Args = Sequence[Any]
Kwargs = Mapping[str, Any]


def argument(args: Args, kwargs: Kwargs, place: int, name: str, default: Any = None) -> Any:
    """Return an argument that is given by place or by name."""
    return args[place] if len(args) > place else kwargs.get(name, default)


def frames_in(values: Any) -> Iterator[DataFrame]:
    """Return the DataFrames among arguments, also those in lists and behind groupings."""
    for value in values:
        if isinstance(value, DataFrame):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, DataFrame))
        elif isinstance(value, dict):
            yield from (item for item in value.values() if isinstance(item, DataFrame))
        elif type(value).__name__ == "GroupedData":
            yield value._df
        elif type(value).__name__ == "PandasCogroupedOps":
            yield from (value._gd1._df, value._gd2._df)


def strings_in(values: Any) -> Iterator[str]:
    """Return the texts among arguments, also those in lists."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, str))
