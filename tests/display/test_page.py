from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from flinkmagic.display import layout_engine, page
from flinkmagic.display.page import document, mime_bundle, to_html
from flinkmagic.display.picture import to_svg
from flinkmagic.display.snapshot import ErrorView, GraphView, JobSnapshot


class Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_several_pictures_open_and_close_without_a_script(
    view: Callable[..., GraphView], snapshot: JobSnapshot
) -> None:
    views = [replace(view(), kind="stream"), view(), view("execution")]
    read = Reader(to_html(views, summary="6 operators", snapshot=snapshot))
    assert [attrs.get("open", "closed") for tag, attrs in read.tags if tag == "details"] == [
        "closed",
        None,
        "closed",
    ]
    assert {tag for tag, _ in read.tags} <= {"div", "details", "summary", "img", "strong", "pre"}
    assert [word for word in read.words if word.endswith("graph")] == [
        "Stream graph",
        "Job graph",
        "Execution graph",
    ]
    sources = [attrs["src"] or "" for tag, attrs in read.tags if tag == "img"]
    prefix = "data:image/svg+xml;base64,"
    assert all(source.startswith(prefix) for source in sources)
    assert [base64.b64decode(source.removeprefix(prefix)).decode() for source in sources] == [to_svg(v) for v in views]


def test_one_picture_stands_open(view: Callable[..., GraphView]) -> None:
    assert "details" not in {tag for tag, _ in Reader(to_html(view())).tags}


def test_mime_bundle(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    bundle = mime_bundle([replace(view(), kind="stream"), view()], snapshot=snapshot)
    assert list(bundle) == ["image/svg+xml", "text/html", "text/plain"]
    ET.fromstring(bundle["image/svg+xml"])
    assert bundle["text/plain"].startswith("delays · Job graph")


def test_errors_are_text_with_the_users_lines(view: Callable[..., GraphView], snapshot: JobSnapshot) -> None:
    bad = "<script>alert('x')</script>"
    error = ErrorView(bad, f"{bad}, line 2", traceback=f"line 1\n{bad}")
    text = to_html(view(), snapshot=replace(snapshot, name=bad, errors=[error]), notes=[bad], summary=bad)
    read = Reader(text)
    assert "script" not in {tag for tag, _ in read.tags}
    assert bad in read.words
    assert not any(name.startswith("on") for _, attrs in read.tags for name in attrs)


def test_without_an_engine_the_tree_stands_and_says_what_to_install(
    view: Callable[..., GraphView], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "engine_available", lambda: False)
    bundle = mime_bundle(view())
    assert list(bundle) == ["text/plain"]
    assert "pip install pygraphviz" in bundle["text/plain"]
    assert bundle["text/plain"].startswith("delays · Job graph")


def test_a_page_of_its_own_has_its_title_escaped_and_a_policy_under_which_nothing_runs() -> None:
    whole = document("<script>\u202eorders & customers", "<p>body</p>", "p { margin: 0; }")
    assert whole.startswith("<!doctype html>\n")
    assert "<title>&lt;script&gt;⟨U+202E⟩orders &amp; customers</title>" in whole
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in whole
    assert "<style>:root { color-scheme: light dark; }p { margin: 0; }</style>" in whole
    assert whole.endswith("<body>\n<p>body</p>\n</body>\n</html>\n")


def test_the_package_is_cheap_to_import() -> None:
    import subprocess
    import sys

    heavy = ("anywidget", "ipywidgets", "graphviz", "IPython", "pyspark")
    code = f"import sys, flinkmagic.display as d; d.GraphView; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert layout_engine.engine_available()
