from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flinkmagic.display.costs import VertexCost
from flinkmagic.display.snapshot import (
    EdgeView,
    ErrorView,
    GraphView,
    JobSnapshot,
    NodeView,
    OperatorLine,
)
from flinkmagic.display.text import progress_line, to_table, to_text
from tests.display.states import state_codes


def test_the_tree_begins_at_the_sinks_and_writes_shared_parts_once(view: Callable[..., GraphView]) -> None:
    assert to_text(view()).splitlines() == [
        "delays · Job graph",
        "6 operators in 5 job vertices, 17 tasks",
        '[4] Sink: by_hour.write.parquet("out/by_hour")  ×4',
        "     line 7 · Insert",
        '└─ HASH · blocking ← [3] Join: groupBy("hour").agg(F.avg("dep_delay").alias("delay"))  ×4 (shared by 2)',
        "        line 5 · HashAggregate",
        '        join(carriers, "carrier")  line 4 · BroadcastHashJoin',
        '   ├─ FORWARD · pipelined bounded ← [1] Source: where("dep_delay > 15")  ×4',
        "   │       line 2 · Filter",
        '   │       spark.read.parquet("flights")  line 1 · Scan parquet',
        '   └─ BROADCAST · blocking ← [2] Source: spark.read.csv("airlines")  ×1',
        "           line 3 · Scan csv",
        '[5] Sink: by_line.write.csv("out/by_line")  ×4',
        "     line 8 · Insert",
        '└─ RANGE · blocking ← [3] groupBy("hour").agg(F.avg("dep_delay").alias("delay")) (see above)',
    ]


def test_states_stand_in_the_tree(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    text = to_text(view().paint(snapshot))
    assert "delays · Job graph · ▶ RUNNING after 4.2 s" in text
    assert '[2] Source: spark.read.csv("airlines")  ×1  ✓1 finished' in text
    assert "◑1 deploying ◌1 canceling ⊘1 canceled ✗1 failed" in text


def test_a_cycle_and_a_deep_chain_end() -> None:
    nodes = tuple(NodeView(str(i), "operator", f"n{i}") for i in range(2000))
    edges = tuple(EdgeView(str(i), str(i + 1), "FORWARD") for i in range(1999))
    loop = EdgeView("1999", "0", "FORWARD")
    for arrows in (edges, (*edges, loop)):
        text = to_text(GraphView("stream", "deep", nodes, arrows))
        assert all(f"[{i + 1}]" in text for i in (0, 1))


def test_hostile_names_stay_on_their_line() -> None:
    line = OperatorLine("a\nb\x1b[31m\u202e", "<b>", "line 1")
    text = to_text(GraphView("job", "j\n\x07", (NodeView("1", "sink", "n", (line,)),)))
    assert text.splitlines()[0] == "j␊␇ · Job graph"
    assert text.splitlines()[1] == "[1] Sink: a␊b␛[31m⟨U+202E⟩  ×1"


def test_progress_line(snapshot: JobSnapshot) -> None:
    assert progress_line(snapshot) == (
        "delays ▶ RUNNING [███▒▒▒              ] 3/17 tasks · 1 failed · 1 canceling · 1 canceled · 1 running · "
        "1 deploying · 1 scheduled · 3/4 slots · 4.2 s"
    )
    assert progress_line(JobSnapshot("empty")) == "empty ○ INITIALIZING [                    ] 0/0 tasks"


def test_table_of_vertices_longest_first_and_errors(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    known = {"v3": VertexCost(220.0, 4000, 3000, 8192, 6144), "v1": VertexCost(90.0, rows_out=7)}
    traceback = 'File "cell 3", line 2\nZeroDivisionError'
    errors = [ErrorView("division by zero", "where (2/4), line 2", traceback=traceback)]
    lines = to_table(view(), replace(snapshot, costs=known, errors=errors), width=160).splitlines()
    assert lines[0].split("  ")[0] == "vertex"
    assert " ".join(lines[0].split()[1:]) == "tasks time rows in rows out bytes in bytes out"
    told = [[part.strip() for part in line.split("  ") if part.strip()] for line in lines[2:7]]
    assert told[0][0].startswith('groupBy("hour")')
    assert told[0][-5:] == ["220 ms", "4,000", "3,000", "8.0 KiB", "6.0 KiB"]
    assert told[1][0] == 'where("dep_delay > 15")'
    assert told[1][-5:] == ["90 ms", "–", "7", "–", "–"]
    assert [line[-5:] for line in told[2:]] == [["–"] * 5] * 3
    assert "✗ where (2/4), line 2: division by zero" in lines
    assert lines[-1] == "    ZeroDivisionError"


def test_a_table_fits_the_window(view, snapshot) -> None:
    done = replace(snapshot, states={node.id: state_codes(["FINISHED"]) for node in view().nodes})
    whole = to_table(view(), done, width=200).splitlines()
    assert "…" not in "".join(whole)
    narrow = to_table(view(), done, width=80).splitlines()
    assert max(map(len, narrow)) <= 80 < max(map(len, whole))
    assert any(line.partition("  ")[0].endswith("…") for line in narrow)
    # A name is never cut beyond recognition, however little room there is.
    assert to_table(view(), done, width=10).splitlines()[2].startswith('where("dep_delay')
