"""What a query's batches have shown, as views and reports say it."""

from __future__ import annotations

from flinkmagic.deployment.streaming.query_progress import BatchProgress
from flinkmagic.session.stream_facts import bars, stream_facts, stream_line

TOLD = """{"batchId": 7, "timestamp": "2026-01-01T00:00:10.000Z", "durationMs":
{"addBatch": 300, "queryPlanning": 40, "triggerExecution": 350}, "eventTime":
{"max": "2026-01-01T00:00:09.500Z", "watermark": "2026-01-01T00:00:02.000Z"}, "stateOperators":
[{"operatorName": "stateStoreSave", "numRowsTotal": 3, "memoryUsedBytes": 2048}], "sources":
[{"numInputRows": 100, "inputRowsPerSecond": 50.0, "processedRowsPerSecond": 285.7},
 {"numInputRows": 0, "inputRowsPerSecond": "NaN"}]}"""


def test_the_last_batch_is_told_with_its_watermark_and_state() -> None:
    batch = BatchProgress.from_json(TOLD)
    assert (batch.batch, batch.input_rows, batch.input_rate, batch.batch_ms) == (7, 100, 50.0, 350)
    assert batch.watermark_lag_ms == 7500.0
    facts = dict(stream_facts([batch]))
    assert facts["batch"] == "7, 100 rows in 350 ms"
    assert facts["phases"] == "addBatch 300 ms, queryPlanning 40 ms"
    assert facts["watermark"].endswith("Z, 7.5 s behind the latest event")
    assert facts["state of stateStoreSave"] == "3 rows, 2.0 KiB"
    assert stream_line("clicks", [batch]).startswith("clicks: batch 7 took 350 ms, 50 rows/s in, 286 rows/s processed")
    assert stream_facts([]) == ()
    assert stream_line("clicks", []) == "clicks: no batch has ended yet"


def test_bars_go_up_to_the_highest_value() -> None:
    assert bars([0, 50, 100]) == "▁▅█"
    assert bars([0.0, 0.0]) == "▁▁"
    assert len(bars(range(1000))) == 24
