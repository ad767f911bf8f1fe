"""A standalone cluster of real processes: rows are shared by sinks, and lie on disk for the next run."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from own_process import told_by

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    script = ("-m", "tests.deployment.standalone_process", str(tmp_path_factory.mktemp("standalone")))
    return told_by(*script, environment={"PYSPARK_PYTHON": sys.executable}).value


def test_the_rows_are_those_of_a_plain_run(story):
    plain, ours = story["rows"]
    assert ours == plain
    assert ours[1] == [[k, sum(2 * number for number in range(k, 4000, 50))] for k in range(50)]


def test_the_sound_sink_finishes_and_shared_rows_are_computed_once(story):
    failed = story["failed"]
    assert failed["status"] == "FAILED"
    assert "too much" in failed["errors"][0]
    succeeded = Counter((vertex, subtask) for vertex, subtask, state in failed["tasks"] if state == "FINISHED")
    assert set(succeeded.values()) == {1}
    assert len([vertex for vertex, subtask in succeeded if vertex.endswith("even")]) == 2
    assert len(failed["executors"]) == 2


def test_the_next_run_reads_the_shared_rows_from_disk(story):
    mended = story["mended"]
    assert mended["status"] == "FINISHED"
    assert "1 write kept" in mended["note"]
    assert {vertex.split()[-1] for vertex, _, _ in mended["tasks"]} == {"all"}
