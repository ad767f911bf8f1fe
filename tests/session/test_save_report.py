"""`Job.save_report`, of a job whose names look like code."""

from __future__ import annotations

import math
import re

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.scheduling.job_status import JobStatus

BAD = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def test_the_report_of_a_job_is_one_file_in_which_names_are_text(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("flinkmagic.session.findings.find.NOTABLE_S", math.inf)  # a slow machine may lose time
    with flinkmagic.capture(spark, name="hostile") as program:
        rows = spark.range(0, 100, 1, 2).select((F.col("id") % 7).alias(BAD), F.lit(BAD).alias("word"))
        rows.groupBy(F.col(f"`{BAD}`"), "word").count().write.mode("overwrite").json(str(tmp_path / "out"))
    job = flinkmagic.compile(program, parallelism=2).run()
    path = job.save_report(tmp_path / "run.html")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    for title in ("Stream graph", "Job graph", "Execution graph", "Regions and slots", "Timeline", "Findings (0)"):
        assert f">{title}</summary>" in text
    assert "<script" not in text
    assert "<img src=x" not in text
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text
    assert "the job is FINISHED" in text
    assert "✓ out: json, overwrite -&gt; " in text
    with pytest.raises(InvalidValueError, match=r"a file name that ends in [.]html"):
        job.save_report(tmp_path / "run.pdf")


def test_the_report_of_a_stream_has_its_queries_once_and_only_sections_with_something_in_them(spark, tmp_path) -> None:
    spark.range(0, 100, 1, 2).write.parquet(str(tmp_path / "in"))
    with flinkmagic.capture(spark, name="clicks", mode="streaming") as program:
        rows = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
        counts = rows.groupBy((F.col("id") % 7).alias("k")).count().writeStream.outputMode("complete")
        counts.format("memory").queryName("clicks_by_k").trigger(availableNow=True).start()
    job = flinkmagic.compile(program, mode="streaming", parallelism=2).run(wait=False)
    assert job.wait(120) is JobStatus.FINISHED
    text = job.save_report(tmp_path / "run.html").read_text(encoding="utf-8")
    body = text.partition("<body>")[2]
    above, _, below = body.partition("<details")
    for words in ("clicks_by_k: batch 0 had 100 rows and took ", "  state of stateStoreSave  ", "  trigger  "):
        assert (above.count(words), below.count(words)) == (1, 0), words
    assert above.count("the last in ") == 1
    headings = re.findall(r'font-weight:600">([^<]*)</summary>', body)
    assert headings[:5] == ["Stream graph", "Job graph", "Execution graph", "Regions and slots", "Vertices"]
    assert "Timeline" not in text
    assert "Findings" not in text
    assert any("state of stateStoreSave" in line for line in job.report())
