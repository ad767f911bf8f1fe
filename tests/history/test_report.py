"""What is shown of a log: as text and as one page, in which nothing runs that a log has brought."""

from __future__ import annotations

import base64
import html
import json
import re
from html.parser import HTMLParser

import pytest

from flinkmagic.history.report import History, histories, page
from tests.history.test_event_log import HEAD, JOB, event, read, task
from tests.history.test_old_spark import LOG

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e"


class Tags(HTMLParser):
    """Collects the tags of a page, and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_text_tells_jobs_findings_and_what_is_missing(tmp_path):
    text = histories(LOG, 1)[0].to_text()
    lines = text.splitlines()
    assert lines[0].startswith("orders by customer: local-")
    assert lines[0].endswith("35.5 s, 5 jobs of 24 tasks")
    assert lines[1].split() == ["job", "state", "began", "took", "tasks", "what"]
    assert [line.split()[0] for line in lines[2:7]] == ["query_0", "job_1", "query_1", "query_2", "job_7"]
    # The longest job alone is shown.
    assert "query_1 (parquet at NativeMethodAccessorImpl.java:0): of 9.4 s, 8.5 s is the critical path" in text
    assert "without the skew" in text
    assert text.count("is the critical path") == 1
    assert "rule: skewed-partition (measured)" in text


@pytest.mark.parametrize(
    ("described", "shown"),
    [
        # The second one is as 3.5.9 and 4.3.0 write it.
        ("runId = 58ad<br/>batch = 3", "runId = 58ad · batch = 3"),
        ("counts\nid = e7ae\nrunId = 58ad\nbatch = 0", "counts · id = e7ae · runId = 58ad · batch = 0"),
        ("SELECT k\n  FROM rows", "SELECT k FROM rows"),
        ("a<br>b <br /> c<br onload=alert(1)>", "a · b · c<br onload=alert(1)>"),
    ],
)
def test_a_description_is_one_line_of_words(tmp_path, described, shown):
    quoted = json.dumps(described)[1:-1].encode()
    job = JOB.replace(b"collect at a.py:3", quoted)
    history = History(read(tmp_path / "log", *HEAD, job, task(0, 1600), task(0, 1600, 2000)), 5)
    assert history.rows()[0][-1] == shown
    assert f"job_0 ({shown}): of 500 ms" in history.to_text()
    made = page([history])
    assert "br" not in {tag for tag, _ in Tags(made).found}
    assert html.escape(shown, quote=False) in made


def test_nothing_of_a_log_runs_in_the_page(tmp_path):
    quoted = HOSTILE.replace('"', '\\"').encode()
    stage = {
        "Stage ID": 0, "Stage Name": HOSTILE, "Parent IDs": [], "Failure Reason": HOSTILE,
        "RDD Info": [{"RDD ID": 1, "Name": HOSTILE}],
    }  # fmt: skip
    failed = {"Result": "JobFailed", "Exception": {"Message": HOSTILE}}
    head = [line.replace(b'"made"', b'"' + quoted + b'"') for line in HEAD]
    app = read(
        tmp_path / "log", *head, JOB.replace(b"collect at a.py:3", quoted),
        event("SparkListenerStageSubmitted", **{"Stage Info": stage}),
        task(0, 1600), task(0, 1600, 1900, "ExceptionFailure"),
        event("SparkListenerStageCompleted", **{"Stage Info": stage}),
        event("SparkListenerJobEnd", **{"Job ID": 0, "Completion Time": 2000, "Job Result": failed}),
    )  # fmt: skip
    assert app.name == HOSTILE
    history = History(app, 5)
    made = page([history])
    tags = Tags(made).found
    assert {tag for tag, _ in tags} <= {
        "html", "head", "meta", "title", "style", "body", "h2", "div", "table", "tr", "td", "th", "details", "summary",
        "strong", "pre", "img",
    }  # fmt: skip
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    policy = next(attributes["content"] for _, attributes in tags if "http-equiv" in attributes)
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    pictures = [attributes["src"] for tag, attributes in tags if tag == "img"]
    assert pictures
    for source in pictures:
        kind, _, data = source.partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert "<script" not in base64.b64decode(data).decode()
    assert "alert(1)" in made
    assert "\u202e" not in made
    assert "\u202e" not in history.to_text()
    assert not re.search(r"https?://(?!www\.w3\.org)", made)
