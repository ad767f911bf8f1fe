"""What a durable key is made of beside a plan: what another process may find changed, and where there is none."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from flinkmagic.reuse import durable_keys
from flinkmagic.reuse.durable_keys import DurableKeys, installed_packages
from flinkmagic.reuse.result_keys import ResultKey, ResultKeys

PLAIN = ResultKey("digest", True, is_durable=True)
PYTHON = replace(PLAIN, runs_python=True)


@pytest.fixture
def keys(spark):
    return DurableKeys(spark.sparkContext)


def test_a_key_is_equal_for_what_is_equal(spark, keys) -> None:
    key = keys.of(PLAIN)
    assert len(key) == 64
    assert key == DurableKeys(spark.sparkContext).of(PLAIN)
    assert keys.of(replace(PLAIN, digest="other")) != key
    assert keys.of(replace(PLAIN, is_durable=False)) is None
    assert keys.of(PYTHON) not in (None, key)
    assert keys.of_text("digest") not in (keys.of_text("dig", "est"), keys.of_text("digest", "x"))


def test_the_zone_counts(keys, monkeypatch, tmp_path) -> None:
    found = {keys.of(PLAIN)}
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    found.add(keys.of(PLAIN))
    (tmp_path / "localtime").write_bytes(b"TZif")
    monkeypatch.setattr(durable_keys, "_LOCAL_TIME", tmp_path / "localtime")
    found.add(keys.of(PLAIN))
    (tmp_path / "localtime").write_bytes(b"TZif2")
    found.add(keys.of(PLAIN))
    assert len(found) == 4


@pytest.mark.parametrize("library", ["numpy", "pandas", "pyarrow", "pyspark"])
def test_versions_count(spark, keys, monkeypatch, library) -> None:
    known = durable_keys._version_of
    monkeypatch.setattr(durable_keys, "_version_of", lambda name: "0.0.1" if name == library else known(name))
    assert DurableKeys(spark.sparkContext).of(PLAIN) != keys.of(PLAIN)


def test_our_own_files_count(spark, keys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(durable_keys, "__file__", str(tmp_path / "flinkmagic" / "reuse" / "durable_keys.py"))
    (tmp_path / "flinkmagic" / "reuse").mkdir(parents=True)
    found = {keys.of(PLAIN), DurableKeys(spark.sparkContext).of(PLAIN)}
    (tmp_path / "flinkmagic" / "reuse" / "Rules.java").write_text("class Rules {}")
    found.add(DurableKeys(spark.sparkContext).of(PLAIN))
    assert len(found) == 3


def test_installed_packages_count_for_functions(keys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path), str(tmp_path / "absent"), str(tmp_path / "a.zip")])
    (tmp_path / "a.zip").write_bytes(b"")
    assert keys.of(PYTHON) is not None
    before = installed_packages()
    (tmp_path / "some.txt").write_text("")
    assert installed_packages() == before
    (tmp_path / "dep-1.0.dist-info").mkdir()
    installed = installed_packages()
    assert installed != before
    assert keys.of(PYTHON) is None, "workers may hold either version"
    assert keys.of(PLAIN) is not None
    os.utime(tmp_path / "dep-1.0.dist-info", (1, 1))
    assert installed_packages() not in (before, installed)


def test_functions_that_run_elsewhere_have_no_key(keys, spark, monkeypatch) -> None:
    sc = spark.sparkContext
    for context in ({"master": "spark://host:7077"}, {"pythonExec": "/usr/bin/env"}, {"pythonExec": "no-such-python"}):
        made = {"master": "local[2]", "pythonExec": sys.executable, "defaultParallelism": 2, **context}
        monkeypatch.setattr(keys, "_sc", SimpleNamespace(**made))
        assert keys.of(PYTHON) is None
        assert keys.of(PLAIN) is not None
    monkeypatch.setattr(keys, "_sc", sc)
    assert keys.of(PYTHON) is not None


# -- plans -------------------------------------------------------------------------------------------------


def asked(spark, frame):
    return ResultKeys(spark.sparkContext).of_answer(frame._jdf.queryExecution())


@pytest.mark.parametrize(
    ("read", "is_durable"),
    [
        ("spark.range(3)", True),
        ("spark.read.parquet(at)", True),
        ("spark.read.parquet(at).groupBy('k').agg(F.first('id'), F.collect_list('id'))", True),
        ("spark.read.parquet(at).select(F.rand(1), F.monotonically_increasing_id())", True),
        ("spark.read.parquet(at).select(F.randn(-7)).sample(0.5, 3)", True),
        ("spark.read.parquet(at).select(F.rand())", False),
        ("spark.read.parquet(at).where('rand() < 0.5')", False),
        ("spark.read.parquet(at).sample(0.5)", False),
        ("spark.read.parquet(at).select(F.expr('uuid()'), F.expr('shuffle(array(id, k))'))", False),
        ("spark.read.parquet(at).select(F.udf(lambda x: x + 1, 'long')('id'))", True),
        ("spark.sql('SELECT * FROM VALUES (1, 2) AS t(a, b)')", True),
        ("spark.createDataFrame([(1,)], ['a'])", False),
        ("spark.read.parquet(at).cache()", False),
        ("spark.read.format('xml').option('rowTag', 'r').load(at + '.xml')", False),
    ],
)
def test_what_can_be_seen_later_is_durable(spark, tmp_path, read, is_durable) -> None:
    from pyspark.sql import functions as F

    at = str(tmp_path / "numbers")
    spark.range(4).selectExpr("id", "id % 2 AS k").write.parquet(at)
    (tmp_path / "numbers.xml").write_text("<a><r><n>1</n></r></a>")
    if "xml" in read and spark.version.startswith("3."):
        pytest.skip("Spark reads XML since 4.0")
    frame = eval(read, {"spark": spark, "F": F, "at": at})
    try:
        if "cache" in read:
            frame.count()
        found = asked(spark, frame)
        assert isinstance(found, ResultKey), found
        assert found.is_durable is is_durable
        assert found.runs_python is ("udf" in read or "createDataFrame" in read)  # whose rows Python's RDD holds
    finally:
        spark.catalog.clearCache()


def test_a_file_that_is_given_its_former_length_and_time_is_another_one(spark, tmp_path) -> None:
    at = tmp_path / "lines.txt"
    at.write_text("one\n")
    frame = spark.read.text(str(at))
    keys = ResultKeys(spark.sparkContext)
    first = keys.of_answer(frame._jdf.queryExecution())
    assert keys.changed_file(first.files) == ""
    was = at.stat()
    with at.open("r+") as file:
        file.write("two\n")
    os.utime(at, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert keys.changed_file(first.files) == f"file:{at}"
    assert asked(spark, frame).digest != first.digest
    assert asked(spark, spark.read.text(str(at))).digest != first.digest
    assert not keys.settled(first, was.st_ctime)
    assert keys.settled(first, was.st_ctime + 2.1)
