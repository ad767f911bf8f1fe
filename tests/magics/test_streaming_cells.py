"""Cells of mode streaming."""

from __future__ import annotations

import time

import pytest

TICKS = "ticks = spark.readStream.schema('value long').csv(folder)\n"
QUERY = "q = ticks.writeStream.format('memory').queryName('{0}').start()\n"


@pytest.fixture
def streamed(notebook, tmp_path):
    """The notebook, with a folder of rows to stream."""
    (tmp_path / "rows.csv").write_text("1\n2\n3\n")
    notebook.names["folder"] = str(tmp_path)
    return notebook


def test_a_streaming_cell_is_shown_run_and_cancelled(streamed) -> None:
    cell = streamed.run("%%flinkgraph told --mode streaming\n" + TICKS + QUERY.format("told_rows"))
    assert cell.error is None
    assert streamed.names["spark"].streams.active == []
    refused = streamed.run("q.id")
    assert type(refused.error).__name__ == "StreamNotStartedError"
    assert "%flinkrun told" in str(refused.error)
    assert streamed.run("%flinkrun told").error is None
    assert streamed.run("q.processAllAvailable()").error is None
    assert streamed.names["spark"].table("told_rows").count() == 3
    assert "RUNNING" in streamed.run("%flinkjobs").stdout
    again = streamed.run("%flinkrun told")
    assert type(again.error).__name__ == "JobRunningError"
    began = time.monotonic()
    assert "told is CANCELED" in streamed.run("%flinkcancel told").stdout
    assert time.monotonic() - began < 3
    assert streamed.names["q"].isActive is False


def test_with_run_a_line_that_needs_the_query_starts_it(streamed) -> None:
    source = TICKS + QUERY.format("needed_rows") + "q.processAllAvailable()\nn = spark.table('needed_rows').count()\n"
    cell = streamed.run("%%flinkgraph needs --mode streaming --run\n" + source)
    assert cell.error is None
    assert streamed.names["n"] == 3
    assert streamed.names["q"].isActive
    assert "needs is CANCELED" in streamed.run("%flinkcancel needs").stdout


def test_without_the_option_a_stream_starts_and_the_text_names_it(streamed) -> None:
    cell = streamed.run("%%flinkgraph plain\n" + TICKS + QUERY.format("plain_rows"))
    assert cell.error is None
    assert streamed.names["q"].isActive
    streamed.names["q"].stop()
    assert "line 3: the stream has started. With --mode streaming" in cell.stdout
