"""The tables of what is known to be pure are complete, in order, and name what there is."""

from __future__ import annotations

import collections
import datetime
import decimal
import importlib
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Row

from flinkmagic.functions import known
from flinkmagic.functions.known import methods
from flinkmagic.functions.known.libraries import LIBRARIES
from flinkmagic.functions.known.spark import SPARK
from flinkmagic.functions.known.standard_library import STANDARD_LIBRARY

TABLES = {"standard library": STANDARD_LIBRARY, "libraries": LIBRARIES, "spark": SPARK, "methods": methods.METHODS}


def frame():
    return pd.DataFrame({"a": [1], "s": ["x"], "t": pd.to_datetime(["2020-01-01"]), "c": pd.Categorical(["u"])})


VALUES = [
    str, bytes, bytearray, int, float, complex, list, tuple, dict, set, frozenset, range, slice, Exception,
    (i for i in ()), datetime.datetime, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, re.Pattern,
    re.Match, collections.Counter, collections.deque, collections.OrderedDict, Row, np.ndarray, np.float64, np.dtype,
    np.datetime64, np.ufunc, pd.DataFrame, pd.Series, pd.Index, pd.MultiIndex, pd.DatetimeIndex, pd.Timestamp,
    pd.Timedelta, pd.Period, pd.Categorical, frame().groupby("a"), frame().groupby("a").s, frame().rolling(1),
    frame().expanding(), frame().set_index("t").resample("D"), frame().s.str, frame().t.dt, frame().c.cat, pa.Table,
    pa.RecordBatch, pa.Array, pa.ChunkedArray, pa.Scalar, pa.Schema, pa.DataType,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: getattr(value, "__name__", type(value).__name__))
def test_each_attribute_of_what_pure_code_may_hold_is_pure_or_impure(value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {name for name in dir(value) if not name.startswith("_")}
    assert names - known.METHODS - known.IMPURE == set()


def test_nothing_is_both():
    assert not known.METHODS & known.IMPURE


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_are_in_order(table):
    if table is not methods.METHODS:
        assert list(table) == sorted(table)
    for names in table.values():
        assert names.split() == sorted(names.split(), key=lambda name: (name.lower(), name))


@pytest.mark.parametrize("module", sorted({**STANDARD_LIBRARY, **LIBRARIES}))
def test_what_is_named_is_there_in_some_version(module):
    """Most of it in the installed one: a name that was never there would be of no use, and may hide a slip."""
    names = known.PURE[module]
    found = pytest.importorskip(module) if module in LIBRARIES else importlib.import_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = {name for name in names if hasattr(found, name)}
    assert len(there) >= 0.6 * len(names), names - there


@pytest.mark.parametrize(
    ("module", "name"),
    [("builtins", "open"), ("builtins", "eval"), ("builtins", "exec"), ("builtins", "__import__"),
     ("builtins", "input"), ("builtins", "getattr"), ("io", "open"), ("numpy", "load"),
     ("numpy", "random"), ("pandas", "read_csv"), ("pandas", "eval"), ("uuid", "uuid4"),
     ("uuid", "uuid1"), ("time", "time"), ("os", "environ"), ("random", "random"),
     ("numpy.random.mtrand", "power"), ("pandas.io.parsers.readers", "read_csv"),
     ("numpy.lib._npyio_impl", "load"), ("pyarrow.compute", "random"), ("pyarrow", "memory_map"),
     ("gzip", "compress"), ("dateutil.parser", "parse")],
)  # fmt: skip
def test_what_must_not_be_there_is_not(module, name):
    assert not known.is_pure(module, name)
    assert not known.is_pure_in_pickles(module, name)
