"""Libraries that open files past Python: their known functions settle where a path touches what is pending."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.fs
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet
import pytest
from pyspark import cloudpickle

from flinkmagic.capturing.hooks import native_hooks, native_readers
from flinkmagic.capturing.hooks.native_readers import Does, NativeCall
from flinkmagic.errors.capturing import PendingWriteError

IMPORTS = """\
    import pyarrow as pa, pyarrow.csv as pc, pyarrow.dataset as ds, pyarrow.feather as pf, pyarrow.json as pj
    import pyarrow.parquet as pq, pyarrow.orc as po, pathlib
    table = pa.table({"id": [7]})
    """

READS = {
    "parquet": ("parquet", "pq.read_table(at(PLACE)).num_rows"),
    "a file of parquet": ("parquet", "pq.ParquetFile(part(at(PLACE))).metadata.num_rows"),
    "the schema": ("parquet", "pq.read_schema(part(at(PLACE))).names"),
    "a path": ("parquet", "pq.ParquetDataset(pathlib.Path(at(PLACE))).read().num_rows"),
    "by name": ("parquet", "read_by_name(at(PLACE)).num_rows"),
    "a dataset": ("parquet", "ds.dataset(at(PLACE)).count_rows()"),
    "a list": ("parquet", "ds.dataset([part(at(PLACE))]).count_rows()"),
    "csv": ("csv", "pc.read_csv(part(at(PLACE)), read_options=pc.ReadOptions(column_names=['id'])).num_rows"),
    "json": ("json", "pj.read_json(input_file=part(at(PLACE))).num_rows"),
    "orc": ("orc", "po.ORCFile(part(at(PLACE))).nrows"),
    "a mapped file": ("json", "len(pa.memory_map(part(at(PLACE))).read())"),
    "an OS file": ("json", "len(pa.OSFile(part(at(PLACE))).read())"),
    "a URI": ("parquet", "ds.dataset('file://' + at(PLACE)).count_rows()"),
}


def _part(folder: str) -> str:
    # Not heard: a look into the folder past Python would settle before the library does.
    return next(entry for entry in _native_listing(folder) if "/part-" in entry and not entry.endswith(".crc"))


def _native_listing(folder: str) -> list[str]:
    return [one.path for one in _LOCAL.get_file_info(pyarrow.fs.FileSelector(folder))]


_LOCAL = pyarrow.fs.LocalFileSystem()


@pytest.mark.matrix(4)
@pytest.mark.parametrize(("form", "line"), READS.values(), ids=READS.keys())
def test_readers(cell: Any, form: str, line: str) -> None:
    cell.namespace.update(part=_part, read_by_name=pyarrow.parquet.read_table)
    cell.plain(IMPORTS)

    def begin(rows: int) -> None:
        for place in ("in", "other"):
            cell.spark.range(0, rows, 1, 1).write.format(form).mode("overwrite").save(cell.at(place))

    def source(mode: str, place: str) -> str:
        return f"""\
            spark.range(0, 5, 1, 1).write.format("{form}").mode("{mode}").save(at("in"))
            got = {line.replace("PLACE", repr(place))}
            """

    begin(2)
    with pytest.raises(PendingWriteError, match=r"cell 3, line 2: .* cell 3, line 1"):
        cell.capture(source("append", "in"))
    program = cell.capture(source("append", "other"))
    assert (len(program.writes), program.eager.settlements) == (1, ())
    begin(2)
    program = cell.capture(source("append", "in"), deploying=True)
    assert [(one.cause, one.location.line) for one in program.eager.settlements] == [("file", 2)]


@pytest.mark.parametrize(
    "line", ["from pyarrow.fs import LocalFileSystem as L; L()", "import pyarrow.fs as f; f.LocalFileSystem()"]
)
def test_file_systems_may_do_anything(cell: Any, line: str) -> None:
    source = f"""\
        spark.range(5).write.mode("append").parquet(at("out"))
        {line}
        """
    with pytest.raises(PendingWriteError, match=r"line 2: .* may read or change"):
        cell.capture(source)
    program = cell.capture(source, deploying=True)
    assert [(one.cause, one.location.line) for one in program.eager.settlements] == [("file", 2)]


def test_rows_are_those_of_the_plain_cell(cell: Any) -> None:
    source = """\
        import pyarrow.parquet as pq, pyarrow as pa
        spark.range(5).write.mode("append").parquet(at("out"))
        n = pq.read_table(at("out")).num_rows
        pq.write_table(pa.table({"id": [7]}), at("out") + "/more.parquet")
        spark.read.parquet(at("out")).write.mode("overwrite").parquet(at("copy"))
        pq.write_table(pa.table({"id": [8]}), at("out") + "/more.parquet")
        """
    cell.plain(source)
    plain = cell.namespace["n"], cell.rows("copy")
    cell.plain('import shutil; [shutil.rmtree(at(place)) for place in ("out", "copy")]')
    program = cell.capture(source, deploying=True)
    assert [one.location.line for one in program.eager.settlements] == [3, 6]
    assert (cell.namespace["n"], cell.rows("copy")) == plain == (5, [0, 1, 2, 3, 4, 7])


WRITES = {
    "parquet": "pq.write_table(table, at(PLACE))",
    "a writer": "pq.ParquetWriter(at(PLACE), table.schema).close()",
    "a dataset": "ds.write_dataset(table, at(PLACE), format='parquet')",
    "csv": "pc.write_csv(table, at(PLACE))",
    "feather": "pf.write_feather(table, at(PLACE))",
    "orc": "po.write_table(table, at(PLACE))",
    "a stream": "pa.output_stream(at(PLACE)).close()",
    "arrow": "pa.ipc.new_file(at(PLACE), table.schema).close()",
}


@pytest.mark.matrix(8)
@pytest.mark.parametrize("line", WRITES.values(), ids=WRITES.keys())
def test_writers(cell: Any, numbers: Any, line: str) -> None:
    cell.plain(IMPORTS)
    numbers("x", 3)
    before = cell.files()
    source = f"""\
        spark.read.parquet(at("x")).write.mode("overwrite").parquet(at("out"))
        {line}
        """
    with pytest.raises(PendingWriteError, match=r"line 2: .* changes file:.*/out, but the write of cell 3, line 1"):
        cell.capture(source.replace("PLACE", "'out/new'"))
    assert cell.files() == before
    assert cell.capture(source.replace("PLACE", "'new'")).eager.settlements == ()
    assert "new" in cell.made()


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A library that is not imported yet, and that the table knows."""
    name = "native_library_of_the_tests"
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / f"{name}.py").write_text(
        "class Thing:\n    def load(self, path): return 'loaded'\ndef read(path=None, filesystem=None): return 'read'\n"
        "def query(text): return 'asked'\n"
    )
    calls = (
        NativeCall(name, ("read", "gone"), Does.READS, 0, "path"),
        NativeCall(name, ("Thing.load", "Gone.load"), Does.BOTH, 1, "path"),
        NativeCall(name, ("query",), Does.ANYTHING),
    )
    monkeypatch.syspath_prepend(str(tmp_path / "library"))
    monkeypatch.setattr(native_hooks, "NATIVE_CALLS", calls)
    monkeypatch.setattr(native_hooks, "NATIVE_MODULES", frozenset({name}))
    yield name
    sys.modules.pop(name, None)


def test_a_library_that_the_cell_imports(cell: Any, library: str) -> None:
    source = f"""\
        spark.range(5).write.mode("append").parquet(at("out"))
        import {library} as lib
        from {library} import read
        told = [read(at("other")), lib.Thing().load(path=at("other")), read(open(at("library/{library}.py")))]
        LINE
        """
    ask = ["read(path=at('out'))", "lib.Thing().load(at('out/sub'))", "lib.query('x')", "lib.read('x', filesystem=1)"]
    for line in ask:
        sys.modules.pop(library, None)
        with pytest.raises(PendingWriteError, match="line 5"):
            cell.capture(source.replace("LINE", line))
    lib = cell.namespace["lib"]
    assert isinstance(lib.read, types.FunctionType)
    assert isinstance(lib.query, types.FunctionType)
    assert lib.Thing.load.__qualname__ == "Thing.load"
    assert not any(isinstance(one, native_hooks.Imports) for one in sys.meta_path)
    assert lib.__spec__.loader.exec_module.__self__ is lib.__spec__.loader


def test_names_that_are_kept_mean_the_original(cell: Any) -> None:
    cell.capture("""\
        from pyarrow.csv import read_csv
        from pyarrow import OSFile
        import pyarrow
        spark.range(3).write.parquet(at("out"))
        kind = [isinstance(1, OSFile), issubclass(OSFile, pyarrow.NativeFile)]
        class Mine(OSFile): pass
        """)
    hooked = cell.namespace["read_csv"]
    assert hooked is not pyarrow.csv.read_csv
    assert cloudpickle.loads(cloudpickle.dumps(hooked)) is pyarrow.csv.read_csv
    assert hooked.__name__ == "read_csv"
    assert issubclass(cell.namespace["Mine"], pyarrow.OSFile)
    assert cell.namespace["kind"][0] is False


def test_every_row_of_the_table_that_is_here_names_something() -> None:
    for call in native_readers.NATIVE_CALLS:
        module = sys.modules.get(call.module)
        if module is not None and call.module.startswith("pyarrow"):
            found = {name for _, name, _ in native_hooks.entries_of(module)}
            assert {name.rsplit(".", 1)[-1] for name in call.names} <= found
