"""Writes answers of actions as bytes, and reads them again in another process, exactly or not at all.

Rows and pandas frames are record batches of Arrow's without their schema: whoever reads them has it from its own query,
so nothing that is stored names a class, a module or a type to make. All else is JSON. An answer is written only if what
is read from the bytes is the same, value by value and type by type (`_same`): that leaves out what Arrow would round,
nanoseconds and times that a change of the clocks repeats, columns whose missing values are of another kind, and
objects of the user's types.
"""

from __future__ import annotations

import datetime
import decimal
import json
import operator
import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import types as T

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ROWS = frozenset({"collect", "first", "head", "tail", "take"})
"""Actions that give rows, or one row."""

FRAME = "toPandas"

_WRONG = (
    ArithmeticError, AttributeError, EOFError, ImportError, LookupError, NotImplementedError, OSError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip
"""What a value that does not fit a type, or bytes that are no answer, raise here and in Arrow."""

_BINARY: dict[str, type] = {"bytes": bytes, "bytearray": bytearray, "": bytes}
"""By `_binary_of`, how binary values are made."""

_HOLD_BINARY = (T.ArrayType, T.BinaryType, T.MapType, T.StructType)
"""The types of columns that may hold binary values."""


class NotExactError(Exception):
    """Says why an answer cannot be stored, or not be read. Users never see it: it only prevents a reuse."""


def written(answer: Any, method: str, schema: T.StructType | None) -> bytes:
    """Return an action's answer as bytes.

    Parameters
    ----------
    schema : StructType or None
        Of the rows; None if the action gives none.

    Raises
    ------
    NotExactError
        If it cannot be read again exactly.
    """
    try:
        content = _written(answer, method, schema)
        again = read(content, method, schema)
    except _WRONG as error:
        raise NotExactError(f"{type(error).__name__}: {error}") from error
    if not _same(answer, again):
        raise NotExactError("it is another one when it is read")
    return content


def read(content: bytes, method: str, schema: T.StructType | None) -> Any:
    """Return what was written.

    Raises
    ------
    NotExactError
        If these are not the bytes of such an answer.
    """
    try:
        head, _, body = content.partition(b"\n")
        told = json.loads(head)
        if method not in ROWS and method != FRAME:
            return _value(told)
        assert schema is not None
        if method == FRAME:
            return _frame(told, body, schema)
        columns = _columns(told, body, [field.dataType for field in schema.fields])
        rows = list(_rows(schema.names, told["rows"], columns))
        return rows if told["shape"] == "rows" else rows[0] if told["shape"] == "row" else None
    except _WRONG as error:
        raise NotExactError(f"{type(error).__name__}: {error}") from error


def _written(answer: Any, method: str, schema: T.StructType | None) -> bytes:
    if method not in ROWS and method != FRAME:
        return json.dumps(_plain(answer)).encode()
    assert schema is not None
    types = [field.dataType for field in schema.fields]
    if method == FRAME:
        told, arrays = _of_frame(answer, types)
    else:
        rows = answer if isinstance(answer, list) else [] if answer is None else [answer]
        shape = "rows" if isinstance(answer, list) else "none" if answer is None else "row"
        arrays = [_array([row[place] for row in rows], kind) for place, kind in enumerate(types)]
        told = {"shape": shape, "rows": len(rows), "bytes": _binary_of(answer)}
    return _with_batch(told, arrays)


# -- numbers and texts -----------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    if type(value) is float:
        return {"float": value.hex()}
    if type(value) is list:
        return [_plain(one) for one in value]
    if type(value) in (bool, int, str, type(None)):
        return value
    raise NotExactError(f"it holds a {type(value).__name__}")


def _value(told: Any) -> Any:
    if isinstance(told, dict):
        return float.fromhex(told["float"])
    return [_value(one) for one in told] if isinstance(told, list) else told


# -- columns ---------------------------------------------------------------------------------------------


def _with_batch(told: dict[str, Any], arrays: Sequence[pa.Array]) -> bytes:
    import pyarrow as pa

    schema = pa.schema([pa.field(str(place), array.type) for place, array in enumerate(arrays)])
    told["types"] = [str(one.type) for one in schema]
    batch = pa.record_batch(list(arrays), schema=schema)
    return json.dumps(told).encode() + b"\n" + bytes(batch.serialize())


def _columns(told: dict[str, Any], body: bytes, types: Sequence[T.DataType]) -> list[list[Any]]:
    arrow = [_arrow_type(kind) for kind in types]
    as_bytes = _BINARY[told["bytes"]]
    batch = _batch(told, body, arrow)
    return [_values(column, kind, as_bytes) for column, kind in zip(batch.columns, types, strict=True)]


def _batch(told: dict[str, Any], body: bytes, types: Sequence[pa.DataType]) -> pa.RecordBatch:
    """Read a record batch; what it says of itself is checked before it is used."""
    import pyarrow as pa

    if told["types"] != [str(one) for one in types]:
        raise NotExactError("it has other columns")
    schema = pa.schema([pa.field(str(place), one) for place, one in enumerate(types)])
    try:
        batch = pa.ipc.read_record_batch(pa.py_buffer(body), schema)
        batch.validate(full=True)
    except OSError as error:
        raise NotExactError(str(error)) from error
    if batch.num_rows != told["rows"]:
        raise NotExactError("it has another number of rows")
    return batch


def _arrow_type(kind: T.DataType) -> pa.DataType:
    import pyarrow as pa

    if type(kind) is T.DecimalType:
        return pa.decimal128(kind.precision, kind.scale)
    if type(kind) is T.ArrayType:
        return pa.list_(_arrow_type(kind.elementType))
    if type(kind) is T.MapType:
        return pa.list_(_arrow_type(_pair_type(kind)))
    if type(kind) is T.StructType:
        return pa.struct([pa.field(str(place), _arrow_type(one.dataType)) for place, one in enumerate(kind.fields)])
    made: dict[type, Callable[[], pa.DataType]] = {
        T.BinaryType: pa.binary, T.BooleanType: pa.bool_, T.ByteType: pa.int8, T.DateType: pa.date32,
        T.DayTimeIntervalType: lambda: pa.duration("us"), T.DoubleType: pa.float64, T.FloatType: pa.float32,
        T.IntegerType: pa.int32, T.LongType: pa.int64, T.NullType: pa.null, T.ShortType: pa.int16,
        T.StringType: pa.string, T.TimestampNTZType: lambda: pa.timestamp("us"),
        T.TimestampType: lambda: pa.timestamp("us"),
    }  # fmt: skip
    if type(kind) not in made:
        raise NotExactError(f"a column is of type {type(kind).__name__}")
    return made[type(kind)]()


def _array(values: list[Any], kind: T.DataType) -> pa.Array:
    """Return Python's values of a column, as Spark's collect() makes them, as an Arrow array."""
    import pyarrow as pa

    if type(kind) is T.StructType:
        fields = [pa.field(str(place), _arrow_type(one.dataType)) for place, one in enumerate(kind.fields)]
        if not fields:
            raise NotExactError("a column has no fields")
        parts = [
            _array([None if value is None else value[place] for value in values], one.dataType)
            for place, one in enumerate(kind.fields)
        ]
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if type(kind) is T.ArrayType:
        return _list_array(values, lambda held: _array(held, kind.elementType))
    if type(kind) is T.MapType:
        pairs = [None if value is None else list(value.items()) for value in values]
        return _list_array(pairs, lambda held: _array(held, _pair_type(kind)))
    return pa.array(values, _arrow_type(kind), from_pandas=False)


def _pair_type(kind: T.MapType) -> T.StructType:
    return T.StructType([T.StructField("0", kind.keyType), T.StructField("1", kind.valueType)])


def _list_array(values: Sequence[Any], made: Callable[[list[Any]], pa.Array]) -> pa.Array:
    import pyarrow as pa

    offsets: list[int | None] = []
    held: list[Any] = []
    for value in values:
        offsets.append(None if value is None else len(held))
        held += value or []
    return pa.ListArray.from_arrays(pa.array([*offsets, len(held)], pa.int32()), made(held))


def _values(array: pa.Array, kind: T.DataType, as_bytes: type) -> list[Any]:
    """Return the values of an Arrow array as Spark's collect() makes them."""
    if type(kind) is T.StructType:
        parts = [_values(array.field(place), one.dataType, as_bytes) for place, one in enumerate(kind.fields)]
        made = list(_rows(kind.names, len(array), parts))
        return [row if there.as_py() else None for row, there in zip(made, array.is_valid(), strict=True)]
    if isinstance(kind, T.ArrayType | T.MapType):
        inner = _pair_type(kind) if isinstance(kind, T.MapType) else kind.elementType
        held, ends = _values(array.values, inner, as_bytes), array.offsets.to_pylist()
        lists = [held[start:end] for start, end in pairwise(ends)]
        made_of = [dict(one) if type(kind) is T.MapType else one for one in lists]
        return [one if there.as_py() else None for one, there in zip(made_of, array.is_valid(), strict=True)]
    values = array.to_pylist()
    if type(kind) is T.BinaryType:
        return [None if value is None else as_bytes(value) for value in values]
    return list(values)


def _rows(names: Sequence[str], number: int, columns: Sequence[Sequence[Any]]) -> Iterable[Row]:
    for place in range(number):
        row = Row(*(column[place] for column in columns))
        row.__fields__ = list(names)
        yield row


def _binary_of(answer: Any) -> str:
    """Return how the settings make binary values: as ``bytes`` or as ``bytearray``; empty if there are none."""
    open_ = [answer]
    while open_:
        value = open_.pop()
        if isinstance(value, bytes | bytearray):
            return type(value).__name__
        if isinstance(value, list | tuple):
            open_ += value
        elif isinstance(value, dict):
            open_ += [*value.keys(), *value.values()]
    return ""


# -- pandas ----------------------------------------------------------------------------------------------


def _of_frame(frame: pd.DataFrame, types: Sequence[T.DataType]) -> tuple[dict[str, Any], list[pa.Array]]:
    import pyarrow as pa

    if len(frame.columns) != len(types):
        raise NotExactError("it has other columns")
    arrays, dtypes, held = [], [], []
    for place, kind in enumerate(types):
        column = frame.iloc[:, place]
        dtypes.append(str(column.dtype))
        if column.dtype == object:
            values = column.tolist()
            arrays.append(_array(values, kind))
            if isinstance(kind, _HOLD_BINARY):
                held.append(values)
        else:
            arrays.append(pa.array(column.to_numpy().view(_flat(dtypes[-1])), from_pandas=False))
    return {"rows": len(frame), "bytes": _binary_of(held), "dtypes": dtypes}, arrays


def _frame(told: dict[str, Any], body: bytes, schema: T.StructType) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    dtypes, fields = told["dtypes"], schema.fields
    if len(dtypes) != len(fields):
        raise NotExactError("it has other columns")
    types = [
        _arrow_type(field.dataType) if dtype == "object" else pa.from_numpy_dtype(_flat(dtype))
        for dtype, field in zip(dtypes, fields, strict=True)
    ]
    as_bytes = _BINARY[told["bytes"]]
    made = {}
    batch = _batch(told, body, types)
    for place, (dtype, field) in enumerate(zip(dtypes, fields, strict=True)):
        array = batch.column(place)
        if dtype == "object":
            made[place] = pd.Series(_values(array, field.dataType, as_bytes), dtype=object)
        else:
            made[place] = pd.Series(array.to_numpy(zero_copy_only=False).copy().view(dtype))
    frame = pd.DataFrame(made, index=pd.RangeIndex(told["rows"]))
    frame.columns = pd.Index(schema.names)
    return frame


def _flat(dtype: str) -> Any:
    """Return the NumPy type by which Arrow stores a column: times as the numbers that they are.

    Raises
    ------
    NotExactError
        If it is none of NumPy's own for numbers and times.
    """
    import numpy as np

    try:
        known = np.dtype(dtype)
    except TypeError as error:
        raise NotExactError(str(error)) from error
    if known.kind not in "biufmM":
        raise NotExactError(f"a column is of type {dtype}")
    return np.dtype("int64") if known.kind in "mM" else known


# -- exactness -------------------------------------------------------------------------------------------

_EQUAL = frozenset({bool, bytes, bytearray, datetime.date, datetime.timedelta, int, str, type(None)})
"""Types whose equal values cannot be told apart."""


def _same(one: Any, other: Any) -> bool:
    """Return whether two answers cannot be told apart."""
    if type(one) is not type(other):
        return False
    if type(one) is float:
        return struct.pack("d", one) == struct.pack("d", other)
    if isinstance(one, Row):
        if list(getattr(one, "__fields__", ())) != list(getattr(other, "__fields__", ())):
            return False
        return len(one) == len(other) and all(map(_same, one, other))
    if type(one) in (list, tuple):
        if _EQUAL.issuperset(map(type, one)):  # no call for each value of a column
            return bool(one == other) and all(map(operator.is_, map(type, one), map(type, other)))
        return len(one) == len(other) and all(map(_same, one, other))
    if type(one) is dict:
        return _same(list(one.items()), list(other.items()))
    if type(one) is datetime.datetime:
        return one == other and one.fold == other.fold and one.tzinfo is None
    if type(one) is decimal.Decimal:
        return one.as_tuple() == other.as_tuple()
    if type(one) in _EQUAL:
        return bool(one == other)
    return is_frame(one) and _same_frame(one, other)


def is_frame(value: Any) -> bool:
    """Return whether a value is a pandas frame; pandas is not imported for that."""
    return type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ == "DataFrame"


def _same_frame(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    about = [
        [type(frame.index), len(frame), type(frame.columns), str(frame.columns.dtype), list(frame.columns),
         [str(dtype) for dtype in frame.dtypes], dict(frame.attrs), frame.index.names, frame.columns.names]
        for frame in (one, other)
    ]  # fmt: skip
    if about[0] != about[1] or not one.index.equals(other.index):
        return False
    for place in range(len(one.columns)):
        ours, theirs = one.iloc[:, place], other.iloc[:, place]
        if ours.dtype == object:
            if not _same(ours.tolist(), theirs.tolist()):
                return False
        elif ours.to_numpy().tobytes() != theirs.to_numpy().tobytes():
            return False
    return True
