"""Lists functions that open files in C, C++ or Rust, unreported by CPython, and what they read and change.

Each row names a module, the functions or methods through which every use of the library passes, and which argument is
the path. What opens its files by Python's `open` (fastparquet, Pillow, `pandas.read_csv`) needs no row.

No row is possible for methods of classes that cannot be changed, such as Cython's: pyarrow's FileSystem and Dataset
among them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Does(enum.Enum):
    """What a function does with its path."""

    READS = enum.auto()
    CHANGES = enum.auto()
    BOTH = enum.auto()
    ANYTHING = enum.auto()
    """It may read and change what its arguments do not name: it runs a query, or follows earlier calls."""


@dataclass(frozen=True)
class NativeCall:
    """Functions that open files past Python."""

    module: str
    """Where their names are looked up."""
    names: tuple[str, ...]
    """A function, or class and method with a dot between."""
    does: Does
    """What they do with the path."""
    position: int = 0
    """The place of the path among the arguments; for a method ``self`` is the first."""
    keyword: str = ""
    """Its name, where it is given by name."""
    paths: Callable[[Any], Any] | None = None
    """Returns the paths from the object itself (the first argument) if no argument has them; None: any."""


def _files_of(dataset: Any) -> Any:
    return dataset.files


def _scanned(frame: Any) -> Any:
    """Judge a lazy polars frame: it may read anything if it scans."""
    return None if "SCAN" in frame.explain(optimized=False) else ()


def _frame_methods(*names: str) -> tuple[str, ...]:
    return tuple(f"LazyFrame.{name}" for name in names)


NATIVE_CALLS = (
    NativeCall("pyarrow.parquet.core", ("ParquetFile.__init__",), Does.READS, 1, "source"),
    NativeCall("pyarrow.parquet.core", ("ParquetDataset.__init__",), Does.READS, 1, "path_or_paths"),
    NativeCall("pyarrow.parquet.core", ("ParquetDataset.read",), Does.READS, paths=_files_of),
    NativeCall("pyarrow.parquet.core", ("ParquetWriter.__init__",), Does.CHANGES, 1, "where"),
    NativeCall("pyarrow.parquet", ("read_metadata", "read_schema"), Does.READS, 0, "where"),
    NativeCall("pyarrow.parquet", ("write_metadata",), Does.CHANGES, 1, "where"),
    NativeCall("pyarrow.dataset", ("dataset", "parquet_dataset"), Does.READS, 0, "source"),
    NativeCall("pyarrow.dataset", ("write_dataset",), Does.CHANGES, 1, "base_dir"),
    NativeCall("pyarrow.csv", ("read_csv", "open_csv"), Does.READS, 0, "input_file"),
    NativeCall("pyarrow.csv", ("write_csv",), Does.CHANGES, 1, "output_file"),
    NativeCall("pyarrow.csv", ("CSVWriter",), Does.CHANGES, 0, "sink"),
    NativeCall("pyarrow.json", ("read_json", "open_json"), Does.READS, 0, "input_file"),
    NativeCall("pyarrow.feather", ("read_table", "read_feather", "FeatherDataset"), Does.READS, 0, "source"),
    NativeCall("pyarrow.feather", ("write_feather",), Does.CHANGES, 1, "dest"),
    NativeCall("pyarrow.orc", ("ORCFile.__init__",), Does.READS, 1, "source"),
    NativeCall("pyarrow.orc", ("ORCWriter.__init__",), Does.CHANGES, 1, "where"),
    NativeCall("pyarrow.orc", ("read_table",), Does.READS, 0, "source"),
    NativeCall("pyarrow.ipc", ("open_file", "open_stream", "RecordBatchFileReader"), Does.READS, 0, "source"),
    NativeCall("pyarrow.ipc", ("new_file", "new_stream"), Does.CHANGES, 0, "sink"),
    # The methods of a file system cannot be hooked: code that makes one may do anything with it.
    NativeCall(
        "pyarrow.fs",
        ("copy_files", *(f"{kind}FileSystem" for kind in ("Azure", "Gcs", "Hadoop", "Local", "S3", "SubTree"))),
        Does.ANYTHING,
    ),
    NativeCall("pyarrow", ("memory_map", "create_memory_map", "OSFile"), Does.BOTH, 0, "path"),
    NativeCall("pyarrow", ("input_stream",), Does.READS, 0, "source"),
    NativeCall("pyarrow", ("output_stream",), Does.CHANGES, 0, "source"),
    NativeCall(
        "duckdb",
        tuple(
            f"DuckDBPyConnection.{name}"
            for name in (
                "execute", "executemany", "sql", "query", "from_query", "read_csv", "from_csv_auto", "read_parquet",
                "from_parquet", "read_json", "table", "view",
            )
        )
        + tuple(
            f"DuckDBPyRelation.{name}"
            for name in (
                "execute", "df", "pl", "arrow", "show", "fetchall", "fetchone", "fetchmany", "fetchdf", "fetchnumpy",
                "fetch_arrow_table", "fetch_arrow_reader", "fetch_record_batch", "to_arrow_table", "to_df", "to_csv",
                "to_parquet", "to_table", "to_view", "write_csv", "write_parquet", "create", "create_view", "insert",
                "insert_into", "update", "query", "count", "__repr__", "__len__", "torch", "tf",
            )
        ),
        Does.ANYTHING,
    ),
    NativeCall("duckdb", ("connect",), Does.BOTH, 0, "database"),
    NativeCall(
        "polars",
        (
            "read_csv", "read_parquet", "read_ipc", "read_ipc_stream", "read_json", "read_ndjson", "read_avro",
            "read_excel", "read_ods", "read_delta", "read_lines", "read_parquet_metadata", "read_parquet_schema",
            "read_ipc_schema", "scan_csv", "scan_parquet", "scan_ipc", "scan_ndjson", "scan_delta", "scan_iceberg",
            "scan_lines",
        ),
        Does.READS,
        0,
        "source",
    ),
    NativeCall("polars", _frame_methods("collect", "collect_async", "collect_batches"), Does.ANYTHING, paths=_scanned),
    NativeCall(
        "polars",
        _frame_methods("sink_csv", "sink_parquet", "sink_ipc", "sink_ndjson", "sink_delta", "sink_iceberg"),
        Does.ANYTHING,
    ),
    NativeCall(
        "polars",
        ("DataFrame.write_csv", "DataFrame.write_parquet", "DataFrame.write_ipc", "DataFrame.write_ipc_stream",
         "DataFrame.write_json", "DataFrame.write_ndjson", "DataFrame.write_avro"),
        Does.CHANGES,
        1,
        "file",
    ),
    NativeCall("polars", ("DataFrame.write_delta",), Does.CHANGES, 1, "target"),
    NativeCall("polars", ("DataFrame.write_excel",), Does.CHANGES, 1, "workbook"),
    NativeCall("deltalake", ("DeltaTable.__init__",), Does.READS, 1, "table_uri"),
    NativeCall(
        "deltalake",
        tuple(
            f"DeltaTable.{name}"
            for name in (
                "to_pandas", "to_pyarrow_table", "to_pyarrow_dataset", "delete", "update", "merge", "vacuum", "restore",
                "update_incremental", "optimize", "repair", "create",
            )
        ),
        Does.ANYTHING,
    ),
    NativeCall("deltalake", ("write_deltalake",), Does.BOTH, 0, "table_or_uri"),
    NativeCall(
        "pyiceberg.io.pyarrow", ("PyArrowFileIO.new_input", "PyArrowFileIO.new_output"), Does.BOTH, 1, "location"
    ),
    NativeCall("h5py", ("File.__init__",), Does.BOTH, 1, "name"),
    NativeCall("tables", ("open_file",), Does.BOTH, 0, "filename"),
    NativeCall("tables.file", ("open_file",), Does.BOTH, 0, "filename"),
    NativeCall("netCDF4", ("Dataset", "MFDataset"), Does.BOTH, 0, "filename"),
    NativeCall("rasterio", ("open",), Does.BOTH, 0, "fp"),
    NativeCall("fiona", ("open",), Does.BOTH, 0, "fp"),
    NativeCall(
        "pyogrio",
        ("read_dataframe", "read_info", "read_bounds", "read_arrow", "open_arrow", "list_layers"),
        Does.READS,
        0,
        "path_or_buffer",
    ),
    NativeCall("pyogrio", ("write_dataframe", "write_arrow"), Does.CHANGES, 1, "path"),
    NativeCall("lmdb", ("open", "Environment"), Does.BOTH, 0, "path"),
    NativeCall("cv2", ("imread", "imreadmulti"), Does.READS, 0, "filename"),
    NativeCall("cv2", ("imwrite", "imwritemulti"), Does.CHANGES, 0, "filename"),
    NativeCall("xgboost", ("DMatrix.__init__",), Does.READS, 1, "data"),
    NativeCall("xgboost", ("Booster.save_model", "Booster.load_model"), Does.BOTH, 1, "fname"),
    NativeCall("lightgbm", ("Booster.save_model",), Does.CHANGES, 1, "filename"),
    NativeCall("torch", ("save",), Does.CHANGES, 1, "f"),
)  # fmt: skip

NATIVE_MODULES = frozenset(call.module for call in NATIVE_CALLS)
