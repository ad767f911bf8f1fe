"""Parts of text files that actions have parsed are kept as columns, and give the rows that the files give."""

from __future__ import annotations

import json
import os

import pytest

from flinkmagic.reuse import source_columns
from flinkmagic.reuse.source_columns import KEPT_A_SECOND, SourceColumns
from flinkmagic.session import release_retained, retained
from flinkmagic.session.actions import text_reads
from flinkmagic.session.actions.keeping_budget import KeepingBudget

HEAD = "id,k,name,x\n"
SCHEMA = "id INT, k INT, name STRING, x DOUBLE"
LINES = [f"{id},{id % 7},name {id % 13} {'~' * (id % 60)},{id / 4}\n" for id in range(60_000)]
CSV = f"df = spark.read.csv(path, header=True, schema='{SCHEMA}')"
SUM = "df.agg(F.sum('x'), F.count('*')).collect()"
PLACED = (
    "df.select('*', F.spark_partition_id().alias('p'), F.monotonically_increasing_id().alias('m'), "
    "F.rand(3).alias('r')).select(F.expr('bit_xor(xxhash64(*))'), F.count('*'), F.sum('r')).collect()"
)
"""All rows with their places, as one."""


@pytest.fixture
def reads(session, tmp_path, monkeypatch):
    """Reads files of some partitions each, in a session in which an action may keep a little more than 1 MiB."""
    cores = session.spark.sparkContext.defaultParallelism
    monkeypatch.setattr(source_columns, "LEAST_BYTES", 0)
    monkeypatch.setattr(text_reads, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 1.1 * 2**20 / (KEPT_A_SECOND * cores))
    session.spark.conf.set("spark.sql.files.maxPartitionBytes", "900k")

    def read(files, line=CSV):
        for name, text in files.items():
            (tmp_path / name).write_bytes(text.encode())
        session.namespace["path"] = str(tmp_path)
        session.plain(f"{line}\nNone")

    yield read
    session.spark.conf.unset("spark.sql.files.maxPartitionBytes")
    for graph in {one.graph for one in retained(session.spark)}:
        release_retained(session.spark, graph)


def sliced(session):
    """Return how many bytes of files are kept."""
    kept = [one for one in retained(session.spark) if one.kind == "columns"]
    slices = SourceColumns.of(session.spark.sparkContext).slices
    return sum(slices.bytes(one.key.removesuffix(" by slices")) for one in kept)


def same(session, line):
    """Run a line both ways, and return what the report of ours says beside."""
    assert list(map(tuple, session.cell(line))) == list(map(tuple, session.plain(line))), line
    return session.report.note


def bytes_read(session):
    """How many bytes of files Hadoop has read in this JVM."""
    statistics = session.spark._jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(one.getBytesRead() for one in statistics if one.getScheme() == "file")


def grow(session, line):
    """Run a line until all of its source is kept; return how much was after each time."""
    sizes, plain = [0], list(map(tuple, session.plain(line)))
    while len(sizes) < 9 and (len(sizes) < 3 or sizes[-1] > sizes[-2]):
        assert list(map(tuple, session.cell(line))) == plain, line
        sizes.append(sliced(session))
    return sizes[1:]


@pytest.mark.long
def test_each_action_keeps_one_more_part_until_all_is_kept(session, reads) -> None:
    text = HEAD + "".join(LINES)
    reads({"rows.csv": text})
    assert same(session, PLACED) == ""
    keeps = f"keeps a part of {os.path.basename(session.namespace['path'])} as columns for later actions"
    assert same(session, PLACED) == keeps
    first = sliced(session)
    assert 2**20 <= first < len(text) / 2
    assert session.plain("df.rdd.getNumPartitions()") > 2
    assert same(session, "df.where('k > 3').groupBy('name').count().orderBy('name').collect()").endswith(keeps)
    assert first < sliced(session) < len(text)
    sizes = grow(session, PLACED)
    assert sizes == sorted(sizes)
    assert sizes[-1] == len(text)
    assert same(session, PLACED).startswith("reads kept columns")
    assert session.cell("df.count()") == len(LINES)
    (one,) = (one for one in retained(session.spark) if one.kind == "columns")
    assert one.bytes > 0


def test_all_sources_of_an_action_share_what_it_may_keep(session, reads, monkeypatch) -> None:
    cores = session.spark.sparkContext.defaultParallelism
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 4 * 2**20 / (KEPT_A_SECOND * cores))
    reads({f"{name}.csv": HEAD + "".join(LINES) for name in "abc"})
    read = "(spark.read.csv(f'{path}/{name}.csv', header=True, schema=df.schema) for name in 'abc')"
    session.plain(f"one, other, third = {read}\nNone")
    for name in ("one", "other", "third"):
        assert same(session, f"{name}.agg(F.sum('x')).collect()") == ""
    line = "one.union(other).union(third).agg(F.max('x')).collect()"
    assert same(session, line).startswith("keeps a part of")
    assert 3 * 2**20 < sliced(session) < 4.5 * 2**20


@pytest.mark.long
def test_an_action_whose_stage_is_not_run_again_keeps_nothing(session, reads) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    line = "df.groupBy('k').agg(F.sum('x')).orderBy('k').collect()"
    assert [same(session, line) for _ in range(2)] == ["", ""]
    assert sliced(session) == 0
    assert same(session, line.replace("sum", "max")).startswith("keeps a part")


def test_what_is_kept_is_not_parsed_again(session, reads) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    assert grow(session, PLACED)[-1] > 0
    before = bytes_read(session)
    assert session.cell(PLACED)[0][1] == len(LINES)
    assert session.cell("df.where('id < 20').collect()")[0]["id"] == 0
    assert bytes_read(session) == before
    session.plain(PLACED)
    assert bytes_read(session) > before


MALFORMED = [*LINES[:20_000], "1,2\n", "x,3,name,4.5\n", "1,1,a,2,3,4\n", '"4,4,\n', *LINES[20_000:45_000]]
QUOTED = [f'{id},1,"a ""{id}"" , b",{id / 2}\n' + "\n" * (id % 3) for id in range(50_000)]
JSON_LINES = [json.dumps({"id": id, "k": id % 7, "name": "n" * (id % 40), "x": id / 4}) + "\n" for id in range(30_000)]
BAD_JSON = [*JSON_LINES[:9_000], '{"id": 1, "k": \n', '{"id": "x", "k": 3}\n', '{"k": 5}\n', "\n", *JSON_LINES[9_000:]]
JSON = f"df = spark.read.schema('{SCHEMA}').json(path)"


@pytest.mark.long
@pytest.mark.parametrize(
    ("files", "read"),
    [
        pytest.param(
            {"a.csv": HEAD + "".join(LINES[:25_000]), "b.csv": HEAD, "c.csv": HEAD + "".join(LINES[25_000:])},
            CSV,
            id="files",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {f"{n}.csv": HEAD + "".join(LINES[n * 900 : n * 900 + 900]) for n in range(40)},
            CSV,
            id="many files",
            marks=pytest.mark.long,
        ),
        pytest.param({"a.csv": HEAD + "".join(MALFORMED)}, CSV, id="malformed"),
        pytest.param({"a.csv": "\n\n" + HEAD + "".join(QUOTED)}, CSV, id="quoted", marks=pytest.mark.long),
        pytest.param(
            {"a.csv": HEAD + "".join(LINES).replace("\n", "\r\n").removesuffix("\r\n")},
            CSV,
            id="windows",
            marks=[pytest.mark.long, pytest.mark.exhaustive],
        ),
        pytest.param(
            {"a.csv": "\ufeff" + "".join(LINES).replace("~", "\u00fc")},
            CSV.replace("header=True", "sep=','"),
            id="no header",
            marks=[pytest.mark.long, pytest.mark.exhaustive],
        ),
        pytest.param({"a.json": "".join(BAD_JSON)}, JSON, id="json", marks=pytest.mark.long),
    ],
)
def test_rows_and_their_order_are_those_of_the_files(session, reads, files, read) -> None:
    reads(files, read)
    sizes = grow(session, PLACED)
    assert sizes[0] == 0 < sizes[1] < sizes[-1] or sizes[1] == sizes[-1] > 0
    for line in (
        PLACED,
        SUM,
        "df.where('k > 2').collect()",
        "df.where('x > 100').groupBy('k').agg(F.sum('x')).orderBy('k').collect()",
        "df.select('k').distinct().orderBy('k').collect()",
        "df.join(df.groupBy('x').agg(F.max('k').alias('y')), 'x').groupBy('k').agg(F.sum('y')).orderBy('k').collect()",
        "df.limit(5).collect()",
    ):
        same(session, line)


@pytest.mark.long
def test_json_is_parsed_where_a_filter_lets_rows_pass_that_are_all_null(session, reads) -> None:
    reads({"a.json": "".join(BAD_JSON)}, JSON)
    grow(session, PLACED)
    assert same(session, "df.where('k IS NULL').groupBy('x').count().orderBy('x').collect()") == ""
    assert same(session, "df.where('k = 3').groupBy('x').count().orderBy('x').collect()").startswith("reads kept")


@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    "options",
    [{"mode": "DROPMALFORMED"}, {"multiLine": "true"}, {"lineSep": "\n"}, {"encoding": "UTF-16"}, {"comment": "#"}],
)
def test_what_cannot_be_read_by_ranges_is_not_kept(session, reads, options) -> None:
    session.namespace["options"] = options
    reads({"rows.csv": HEAD + "".join(LINES[:9000])}, CSV.replace("read.", "read.options(**options)."))
    for _ in range(3):
        assert same(session, PLACED) == ""
    assert sliced(session) == 0


@pytest.mark.long
def test_files_that_changed_are_parsed_again(session, reads) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    for _ in range(3):
        same(session, PLACED)
    assert session.report.note.startswith("reads kept columns")
    reads({"rows.csv": HEAD + "".join(LINES[:30_000])})
    assert same(session, PLACED) == ""


def test_an_action_that_may_stop_early_keeps_nothing(session, reads) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    same(session, PLACED)
    for _ in range(2):
        session.cell("df.show(2)")
        session.cell("df.where('k = 1').first()")
        session.cell("df.limit(2).collect()")
        session.cell("next(df.join(df.limit(1).select('k').distinct(), 'k').toLocalIterator())")
    assert sliced(session) == 0


@pytest.mark.long
def test_a_query_that_asks_for_files_reads_the_files(session, reads) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    for _ in range(3):
        same(session, PLACED)
    line = "df.groupBy(F.input_file_name().alias('f')).agg(F.sum('x')).collect()"
    before = sliced(session)
    assert same(session, line) == ""
    assert sliced(session) == before > 0


@pytest.mark.long
def test_what_is_released_is_parsed_again_and_leaves_no_block(session, reads) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    sc = session.spark.sparkContext._jsc.sc()
    before = {info.id() for info in sc.getRDDStorageInfo()}
    for _ in range(3):
        same(session, PLACED)
    (one,) = (one for one in retained(session.spark) if one.kind == "columns")
    assert len({info.id() for info in sc.getRDDStorageInfo()} - before) == 2
    release_retained(session.spark, one.name)
    assert {info.id() for info in sc.getRDDStorageInfo()} <= before
    assert same(session, PLACED).startswith("keeps a part")


@pytest.mark.long
def test_other_partitions_of_the_same_files_are_parsed(session, reads) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    for _ in range(3):
        same(session, PLACED)
    session.spark.conf.set("spark.sql.files.maxPartitionBytes", "400k")
    session.plain(f"{CSV}\nNone")
    for _ in range(3):
        same(session, PLACED)


@pytest.mark.long
def test_a_source_that_is_too_large_for_memory_is_not_kept(session, reads, monkeypatch) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    monkeypatch.setattr(source_columns, "MEMORY_SHARE", 1e-6)
    for _ in range(3):
        assert same(session, PLACED) == ""
    assert sliced(session) == 0


@pytest.mark.long
def test_what_kept_rows_are_made_from_is_read_of_slices(session, reads) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    for _ in range(3):
        same(session, PLACED)
    session.plain("wide = df.groupBy('k', 'name').agg(F.sum('x').alias('x'))\nNone")
    for _ in range(3):
        same(session, "wide.groupBy('k').agg(F.sum('x')).orderBy('k').collect()")
        same(session, "wide.where('k = 2').orderBy('name').collect()")


def stored_in_memory(session):
    """Return of each kept RDD whether it is in memory."""
    infos = session.spark.sparkContext._jsc.sc().getRDDStorageInfo()
    return [info.storageLevel().useMemory() for info in infos if "columns of" in info.name()]


@pytest.mark.long
def test_kept_rows_do_not_drive_each_other_out_of_memory(session, reads) -> None:
    for left in session.spark.sparkContext._jsc.getPersistentRDDs().values():  # by tests before: it would count as kept
        left.unpersist(True)
    reads({"rows.csv": HEAD + "".join(LINES)})
    assert grow(session, PLACED)[-1] > 0
    stored = stored_in_memory(session)
    assert len(stored) > 2
    assert all(stored)


@pytest.mark.long
def test_computed_columns_are_kept_over_what_is_kept_of_their_source(session, reads, monkeypatch) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    line = "df.where(F.regexp_extract('name', ' (1.)', 1) == '11').agg(F.{}('x'), F.count('*')).collect()"
    before = session.plain(line.format("sum"))
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, _expected: 0.0)
    assert same(session, line.format("sum")) == ""  # which parses, and computes
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, _expected: 60.0)
    for _ in range(10):
        if not sliced(session):
            same(session, PLACED)
    assert sliced(session)
    read = bytes_read(session)
    note = ""
    for function in ("max", "min", "avg"):
        assert session.cell(line.format(function))[0][1] == before[0][1]
        note += session.report.note
    assert "keeps the columns that it reads" in note
    assert session.cell(line.format("sum")) == before
    assert bytes_read(session) == read


@pytest.mark.long
def test_what_the_user_has_cached_is_not_read_of_its_source(session, reads) -> None:
    reads({"rows.csv": HEAD + "".join(LINES)})
    same(session, PLACED)
    session.plain("df.cache().count()\nNone")
    try:
        assert [same(session, PLACED) for _ in range(2)] == ["", ""]
        assert sliced(session) == 0
    finally:
        session.plain("df.unpersist(True)\nNone")
    assert same(session, PLACED).startswith("keeps a part")
