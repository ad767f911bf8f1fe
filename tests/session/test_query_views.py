"""What a query's batches have shown, as views and reports say it."""

from __future__ import annotations

import json
from typing import Any

from flinkmagic.deployment.streaming.query_progress import BatchMeasures, BatchProgress, BatchTasks, QuerySeen
from flinkmagic.session.query_views import query_view


def told(**changed: Any) -> BatchProgress:
    """A batch as Spark tells it: two sources, of which one has shown nothing, and two states of one name."""
    state = {"operatorName": "stateStoreSave", "memoryUsedBytes": 2048}
    batch = {
        "batchId": 7,
        "timestamp": "2026-01-01T00:00:10.000Z",
        "durationMs": {"addBatch": 300, "queryPlanning": 40, "walCommit": 0, "triggerExecution": 350},
        "eventTime": {"max": "2026-01-01T00:00:09.500Z", "watermark": "2026-01-01T00:00:02.000Z"},
        "stateOperators": [{**state, "numRowsTotal": 3}, {**state, "numRowsTotal": 1}],
        "sources": [
            {"numInputRows": 100, "inputRowsPerSecond": 50.0, "processedRowsPerSecond": 285.7},
            {"numInputRows": 0, "inputRowsPerSecond": "NaN"},
        ],
    }
    return BatchProgress.from_json(json.dumps({**batch, **changed}))


def test_a_query_is_shown_with_its_last_batch_and_its_course() -> None:
    first = told(batchId=6, durationMs={"addBatch": 600, "triggerExecution": 700}, stateOperators=[], eventTime={})
    view = query_view("clicks", QuerySeen((first, told()), BatchTasks(total=4, active=1, completed=2, failed=1)))
    assert view.doing == (
        "batch 7 had 100 rows and took 350 ms; 2 of 4 tasks of the running batch finished, 1 running, 1 failed"
    )
    assert [(fact.name, fact.value, fact.course) for fact in view.facts] == [
        ("input", "50 rows/s", (50.0, 50.0)),
        ("processing", "286 rows/s", (285.7, 285.7)),
        ("batch", "350 ms", (700, 350)),
        ("addBatch", "300 ms", (600, 300)),
        ("queryPlanning", "40 ms", (0, 40)),
        ("watermark", "2026-01-01T00:00:02.000Z", ()),
        ("watermark lag", "7.5 s", (7500.0,)),
        ("state of stateStoreSave", "3 rows, 2.0 KiB, 0 changed", (3,)),
        ("state of stateStoreSave 2", "1 row, 2.0 KiB, 0 changed", (1,)),
        ("source 1", ": the beginning → ", ()),
        ("source 2", ": the beginning → ", ()),
    ]


def test_a_batch_says_what_it_dropped_which_offsets_it_read_and_what_it_wrote() -> None:
    state = {"operatorName": "dedupe", "numRowsTotal": 3, "numRowsUpdated": 2}
    source = {"description": "KafkaV2[Subscribe[clicks]]", "numInputRows": 100, "startOffset": {"clicks": {"0": 7}}}
    more = {
        "stateOperators": [{**state, "numRowsDroppedByWatermark": 4}],
        "sources": [{**source, "endOffset": {"clicks": {"0": 9}}, "latestOffset": {"clicks": {"0": 12}}}],
        "sink": {"description": "MemorySink", "numOutputRows": 5},
        "durationMs": {"walCommit": 20, "commitOffsets": 30, "triggerExecution": 350},
    }
    seen = QuerySeen(
        (told(), told(**more)),
        measures=BatchMeasures(7, (), (1_767_225_602_000.0,)),
        trigger="ProcessingTimeTrigger(1000)",
        checkpoint="file:/tmp/clicks",
        restarts=2,
    )
    facts = {fact.name: (fact.value, fact.course) for fact in query_view("clicks", seen).facts}
    assert facts["output"] == ("5 rows", (0.0, 5.0))
    assert facts["state of dedupe"] == ("3 rows, 0 B, 2 changed", (3, 3))
    assert facts["dropped late by dedupe"] == ("4 rows, 4 in 2 batches", (0.0, 4.0))
    assert facts["watermark of dedupe"] == ("2026-01-01T00:00:02.000Z", ())
    assert facts["source"] == (
        'KafkaV2[Subscribe[clicks]]: {"clicks": {"0": 7}} → {"clicks": {"0": 9}}; it has {"clicks": {"0": 12}}', ()
    )  # fmt: skip
    assert facts["trigger"] == ("ProcessingTimeTrigger(1000)", ())
    assert facts["checkpoint"] == ("file:/tmp/clicks, 8 batches, the last in 50 ms", ())
    assert facts["restarts"] == ("2", ())
    (fact,) = query_view("clicks", QuerySeen(checkpoint="file:/tmp/clicks", checkpoint_bytes=2048)).facts
    assert fact.value == "file:/tmp/clicks, 2.0 KiB"
    assert told(sink={"numOutputRows": -1}).output_rows is None


def test_before_its_first_batch_has_ended_a_query_says_so() -> None:
    assert query_view("clicks", QuerySeen()).doing == "no batch has ended yet"
    assert query_view("clicks", QuerySeen()).facts == ()
