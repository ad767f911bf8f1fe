from __future__ import annotations

import re

import pytest

from flinkmagic.display.card import CardLine, card_bundle

COUNT = CardLine(
    "count()", 3, "FINISHED", seconds=1.2, stages=2, tasks=14, reused=1, saved_seconds=0.8,
)  # fmt: skip


def test_a_line_says_where_it_is_and_what_it_took() -> None:
    assert COUNT.to_text() == "count() · line 3 · 2 stages, 14 tasks · 1.2 s · reused 1 stage, saved 800 ms"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (CardLine("show()", 1), "▶ show() · line 1 · RUNNING"),
        (CardLine("show()", 1, seconds=2.0, stages=2, tasks=9, done=1200, to_do=5000),
         "▶ show() · line 1 · RUNNING · 1,200/5,000 tasks · 2.0 s"),
        (CardLine("show()", 1, "FAILED", seconds=0.3, stages=1), "✗ show() · line 1 · FAILED · 1 stage · 300 ms"),
        (CardLine("show()", 1, "CANCELED", times=3), "⊘ show() · line 1 · 3 times · CANCELED"),
        (CardLine("first()", 2, "FINISHED", times=1000, seconds=4.0, stages=1000),
         "first() · line 2 · 1,000 times · 1,000 stages · 4.0 s"),
        (CardLine("corr('a', 'b')", 2, "FINISHED", seconds=4.0, note="plain Spark: it is a stream"),
         "corr('a', 'b') · line 2 · 4.0 s · plain Spark: it is a stream"),
        (CardLine("count()", 2, "FINISHED", seconds=0.004, answered=1, answered_at="as at 20:41:03", saved_seconds=1.2),
         "count() · line 2 · 4 ms · answered as at 20:41:03, saved 1.2 s"),
        (CardLine("count()", 2, "FINISHED", times=2, seconds=1.0, stages=2, reused=1, answered=1,
                    answered_at="as at 20:41:03", saved_seconds=1.2),
         "count() · line 2 · 2 times · 2 stages · 1.0 s · reused 1 stage · answered as at 20:41:03, saved 1.2 s"),
        (CardLine("count()", 2, "FINISHED", seconds=1.0, stages=1, reused=1, reused_from="from 14:02, another kernel",
                  saved_seconds=31.0),
         "count() · line 2 · 1 stage · 1.0 s · reused 1 stage from 14:02, another kernel, saved 31.0 s"),
    ],
)  # fmt: skip
def test_each_state_and_sums(line: CardLine, text: str) -> None:
    assert line.to_text() == text


def test_a_notebook_keeps_a_row_for_each_line() -> None:
    bundle = card_bundle([COUNT, CardLine("show()", 1, "FAILED")])
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"].splitlines() == [COUNT.to_text(), "✗ show() · line 1 · FAILED"]
    assert re.findall(r'<span title="(\w+)">(.)</span>', bundle["text/html"]) == [("finished", "✓"), ("failed", "✗")]
    # The colours are those of the page around it, light or dark.
    assert not re.search(r"[^-]color:", bundle["text/html"])


def test_hostile_calls_and_notes_are_text() -> None:
    hostile = '<img src=x onerror="alert(1)">\n\x1b[31m\u202e'
    bundle = card_bundle([CardLine(hostile, 1, "FINISHED", note=hostile)])
    assert "<img" not in bundle["text/html"]
    assert bundle["text/html"].count("&lt;img") == 2
    for text in bundle.values():
        assert not {"\n", "\x1b", "\u202e"} & set(text)
