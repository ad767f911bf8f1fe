"""Where the time of a vertex went: of facts that are made up, and of a job that runs."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.deployment.stages import stage_runner
from flinkmagic.display.measures import PARTS
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.session.vertex_measures import spark_ui, time_parts, vertex_measures
from tests.session.findings.made_facts import operator, task, vertex


def test_the_parts_add_up_to_the_time_of_the_tasks():
    python = operator("ArrowEvalPythonExec", id=2, metrics={"pythonTotalTime": 700})
    sort = operator("SortExec", id=3, metrics={"sortTime": 100})
    first = task(
        0, 0, 1.0, task_id=1, run_ms=900, gc_ms=50, fetch_wait_ms=200, shuffle_write_ms=10, serialization_ms=40
    )
    second = task(1, 0, 0.5, task_id=2, run_ms=480)
    parts = time_parts(vertex(first, second, operators=(python, sort)))
    assert parts == {
        "computing": 320.0, "Python": 700.0, "sorting": 100.0, "shuffle read wait": 200.0, "shuffle write": 10.0,
        "garbage collection": 50.0, "serialization": 40.0, "scheduler delay": 80.0,
    }  # fmt: skip
    assert sum(parts.values()) == 1500.0
    assert list(parts) == [name for name in PARTS if name in parts]


def test_clocks_that_ran_beside_each_other_take_no_more_than_there_was():
    python = operator("BatchEvalPythonExec", id=2, metrics={"pythonTotalTime": 5000})
    sort = operator("SortExec", id=3, metrics={"sortTime": 100})
    parts = time_parts(vertex(task(0, 0, 1.0, task_id=1, gc_ms=300), operators=(python, sort)))
    assert parts == {"Python": 700.0, "garbage collection": 300.0}


def test_attempts_that_have_not_finished_count_apart():
    lost = task(0, 0, 2.0, task_id=1, state=ExecutionState.FAILED, run_ms=None)
    parts = time_parts(vertex(lost, task(0, 2, 1.0, task_id=2, attempt=1)))
    assert parts == {"computing": 1000.0, "lost attempts": 2000.0}


def test_words_of_tasks_operators_and_stages():
    words = {
        "numOutputRows": ("number of output rows", "sum"), "sortTime": ("sort time", "timing"),
        "spillSize": ("spill size", "size"), "shuffleWriteTime": ("shuffle write time", "nsTiming"),
        "avgHashProbe": ("avg hash probes per key", "average"),
    }  # fmt: skip
    sort = operator(
        "SortExec", id=7, metrics={"spillSize": 2048, "sortTime": 1200, "numOutputRows": 12000, "avgHashProbe": 11}
    )
    above = operator("ShuffleExchangeExec", id=-1, metrics={"shuffleWriteTime": 5_000_000, "paths": ["a"]})
    tasks = [
        task(0, 0, 1.0, task_id=1, stage=4, result_bytes=1024, peak_memory_bytes=1 << 20),
        task(1, 0, 1.0, task_id=2, stage=4, stage_attempt=1, result_bytes=1024, peak_memory_bytes=1 << 21),
    ]
    told = vertex_measures(vertex(*tasks, operators=(sort,), above=above, words=words), "http://here:4040")
    assert told.operators == {
        7: (("number of output rows", "12,000"), ("sort time", "1.2 s"), ("spill size", "2.0 KiB"))
    }
    assert told.above == (("shuffle write time", "5 ms"),)
    assert told.facts == (("results sent to the driver", "2.0 KiB"), ("peak execution memory", "2.0 MiB"))
    assert [(one.words, one.url) for one in told.stages] == [
        ("stage 4", "http://here:4040/stages/stage/?id=4&attempt=0"),
        ("stage 4, attempt 2", "http://here:4040/stages/stage/?id=4&attempt=1"),
    ]
    assert vertex_measures(vertex(*tasks), None).stages == ()


def test_a_worker_that_is_used_again_is_not_said_to_initialize_until_it_has_work():
    words = {
        "pythonInitTime": ("time to initialize Python workers", "timing"),
        "pythonTotalTime": ("time to run Python workers", "timing"),
    }
    called = operator("ArrowEvalPythonExec", id=3, metrics={"pythonInitTime": 21_247, "pythonTotalTime": 943})
    told = vertex_measures(vertex(task(0, 0, 1.7, task_id=1), operators=(called,), words=words), None)
    assert told.operators == {3: (("time to run Python workers", "943 ms"),)}


def test_a_job_tells_them_when_it_is_looked_at_closely(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(stage_runner, "MEASURED_FROM_S", 0.0)
    rows = spark.range(0, 1000, 1, 2).repartition(2, "id").sortWithinPartitions("id")
    with flinkmagic.capture(spark, name="measured") as program:
        rows.select(F.col("id") * 2).write.json(str(tmp_path / "out"))
    job = flinkmagic.compile(program, parallelism=2).run()
    assert job.snapshot().measures == {}
    measures = job.snapshot(closely=True).measures
    assert list(measures) == [one.id for one in job.execution_graph.job_vertices]
    mapped, written = measures.values()
    assert dict(mapped.above)["shuffle records written"] == "1,000"
    assert dict(written.above)["number of output rows"] == "1,000"
    rows = {name: value for facts in mapped.operators.values() for name, value in facts}
    assert rows["number of output rows"] == "1,000"
    records = job.tasks()
    for one, told in zip(job.execution_graph.job_vertices, (mapped, written), strict=True):
        own = [record for record in records if record.vertex_id == one.id]
        assert sum(told.parts.values()) == pytest.approx(sum(record.end_ms - record.start_ms for record in own))
    assert all(record.serialization_ms is not None for record in records)  # often 0 ms
    assert written.stages == ()  # this session has no UI
    assert spark_ui(spark) is None
