"""`Job.save_report`, of a job whose names look like code."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.errors.usage import InvalidValueError

BAD = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def test_the_report_of_a_job_is_one_file_in_which_names_are_text(spark, tmp_path) -> None:
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
