"""A write goes by the Hadoop settings of its own line, which are shared by all sessions of the context."""

from __future__ import annotations

import os

import pytest

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus

MARKS = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
"""A setting that Hadoop's own files do not name."""


@pytest.fixture
def hadoop(spark):
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    yield conf
    conf.unset(MARKS)


def captured(spark, name, *lines):
    with flinkmagic.capture(spark, name=name) as program:
        for line in lines:
            line()
    return program


def test_each_write_goes_by_the_settings_of_its_line(spark, hadoop, tmp_path):
    def write(name):
        return lambda: spark.range(3).write.parquet(str(tmp_path / name))

    before = captured(spark, "before", write("before"))
    hadoop.set(MARKS, "false")
    after = captured(spark, "after", write("after"))
    late = flinkmagic.compile(after, retain="none")
    # Compiled on either side of the line that sets it, and run after another one.
    early = flinkmagic.compile(before, retain="none")
    hadoop.unset(MARKS)
    assert late.run().status is JobStatus.FINISHED
    hadoop.set(MARKS, "false")
    assert early.run().status is JobStatus.FINISHED
    assert "_SUCCESS" in os.listdir(tmp_path / "before")
    assert "_SUCCESS" not in os.listdir(tmp_path / "after")
    assert spark.read.parquet(str(tmp_path / "before")).count() == 3
    assert spark.read.parquet(str(tmp_path / "after")).count() == 3
    assert hadoop.get(MARKS) == "false"
    assert spark.conf.get(MARKS, None) is None


def test_a_snapshot_holds_what_was_set_and_brings_defaults_back(spark, hadoop, tmp_path):
    program = captured(spark, "snapshot", lambda: spark.range(3).write.parquet(str(tmp_path / "a")))
    settings = program.writes[0].session
    assert MARKS not in settings.hadoop
    assert "fs.file.impl" not in settings.hadoop
    hadoop.set("mapreduce.job.reduces", "7")
    try:
        clone = spark._jsparkSession.cloneSession()
        settings.apply_to(clone.sessionState().conf())
        assert clone.sessionState().newHadoopConf().get("mapreduce.job.reduces") == "1"
        assert spark._jsparkSession.sessionState().newHadoopConf().get("mapreduce.job.reduces") == "7"
    finally:
        hadoop.set("mapreduce.job.reduces", "1")
