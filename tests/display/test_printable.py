from __future__ import annotations

import html
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkmagic.display import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x00b", "a␀b"),
        ("tab\there", "tab␉here"),
        ("line\nbreak", "line␊break"),
        ("\x7f", "␡"),
        ("evil\u202egnp.exe", "evil⟨U+202E⟩gnp.exe"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("\ud800", "⟨U+D800⟩"),
        ("\ufffe", "⟨U+FFFE⟩"),
        ("no\u00a0break", "no break"),
        ("שלום", "שלום"),
        ("e\u0301", "é"),
    ],
)
def test_what_would_not_be_seen_is_written_out(text: str, shown: str) -> None:
    assert printable.visible(text) == shown


def test_piles_of_combining_marks_are_cut() -> None:
    assert printable.visible("q" + "\u0316" * 40) == "q" + "\u0316" * 3


@given(st.text())
def test_visible_text_is_stable_encodable_and_valid_in_xml(text: str) -> None:
    shown = printable.visible(text)
    assert printable.visible(shown) == shown
    assert "\n" not in shown
    parsed = ET.fromstring(f"<t a='{printable.xml(shown)}'>{printable.xml(shown)}</t>".encode())
    assert (parsed.text or "") == shown
    assert parsed.get("a") == shown


@given(st.text())
def test_xml_leaves_no_markup(text: str) -> None:
    escaped = printable.xml(text)
    assert not set("<>\"'") & set(escaped)
    assert html.unescape(escaped) == html.unescape(text) or html.unescape(escaped) == text


@given(st.text(), st.floats(30, 400), st.integers(1, 4))
def test_wrapped_text_fits_and_loses_nothing_silently(text: str, limit: float, lines: int) -> None:
    shown = printable.visible(text)
    wrapped = printable.wrap(shown, limit, 12, "mono", lines)
    assert 1 <= len(wrapped) <= lines
    assert all(printable.width(line, 12, "mono") <= limit for line in wrapped)
    if not wrapped[-1].endswith("…"):
        assert "".join("".join(wrapped).split()) == "".join(shown.split())


def test_calls_break_where_code_breaks_well() -> None:
    call = 'groupBy("hour").agg(F.avg("dep_delay").alias("delay"))'
    assert printable.wrap(call, 300, 12.5, "mono") == [
        'groupBy("hour").agg(F.avg("dep_delay")',
        '.alias("delay"))',
    ]


def test_dot_strings_hold_no_escape_and_no_entity() -> None:
    assert printable.dot('a"b\\N & <b>') == '"a\\"b\\\\N &amp; <b>"'
