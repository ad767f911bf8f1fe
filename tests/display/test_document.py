"""A page of its own."""

from __future__ import annotations

from flinkmagic.display.document import document


def test_a_page_has_its_title_escaped_and_a_policy_under_which_nothing_runs() -> None:
    page = document("<script>\u202eorders & customers", "<p>body</p>", "p { margin: 0; }")
    assert page.startswith("<!doctype html>\n")
    assert "<title>&lt;script&gt;⟨U+202E⟩orders &amp; customers</title>" in page
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page
    assert "<style>:root { color-scheme: light dark; }p { margin: 0; }</style>" in page
    assert page.endswith("<body>\n<p>body</p>\n</body>\n</html>\n")
