"""TPC-H's 22 queries as 22 sinks of one cell give the rows of plain Spark."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pytest

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus

PATH = Path(__file__).parents[1] / "tpch" / "__init__.py"
specification = importlib.util.spec_from_file_location("tpch", PATH)
tpch = importlib.util.module_from_spec(specification)
specification.loader.exec_module(tpch)


@pytest.fixture(scope="module")
def own_session(spark, tmp_path_factory):
    """A session with the tables as views."""
    folder = tmp_path_factory.mktemp("tpch")
    tpch.generate(folder, 0.01)
    session = spark.newSession()
    tpch.register(session, folder)
    return session


@pytest.mark.long
def test_22_queries_are_22_sinks_of_one_job(own_session, spark_work, ran_once, tmp_path):
    assert len(tpch.QUERIES) == 22
    with flinkmagic.capture(own_session) as program:
        for name, query in tpch.QUERIES.items():
            own_session.sql(query).write.parquet(str(tmp_path / name))
    graph = flinkmagic.compile(program, name="tpch", parallelism=4)
    assert len(graph.sinks) == 22
    before = spark_work.jobs()
    job = graph.run()
    assert job.status is JobStatus.FINISHED, job.exceptions()
    ran = spark_work.tasks_by_stage(before)
    ran_once(job.tasks(), ran)
    empty = []
    for name, query in tpch.QUERIES.items():
        expected = own_session.sql(query)
        written = own_session.read.parquet(str(tmp_path / name))
        assert [(field.name, field.dataType) for field in written.schema] == [
            (field.name, field.dataType) for field in expected.schema
        ], name
        rows = Counter(map(tuple, expected.collect()))
        assert Counter(map(tuple, written.collect())) == rows, name
        if not rows:
            empty.append(name)
    # At this scale a few of them find nothing.
    assert len(empty) <= 3, empty
    assert any(len(stage.sinks) > 1 for stage in graph.shared)
