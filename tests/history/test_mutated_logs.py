"""A log may hold anything: whatever is changed in one, its jobs are shown as far as they can be."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from flinkmagic.errors.history import NoEventLogError
from flinkmagic.history.event_files import EventLog, find_logs
from flinkmagic.history.event_log import read_application
from flinkmagic.history.report import History
from tests.history.test_old_spark import LOG

WEIRD = [None, -1, 0, 10**18, "", "x\u202e<b>", [], {}, True, 1.5, "NaN", [[]], ["a"], {"a": 1}]


def mutated(value: Any, chance: random.Random, part: float) -> Any:
    """A copy in which that part of all fields is gone, replaced or repeated, but for the names of events."""
    if isinstance(value, dict):
        drawn = ((name, one, 1.0 if name == "Event" else chance.random()) for name, one in value.items())
        return {
            name: chance.choice(WEIRD) if at < 2 * part else mutated(one, chance, part)
            for name, one, at in drawn
            if at >= part
        }
    if isinstance(value, list):
        kept = [mutated(one, chance, part) for one in value if chance.random() > part]
        return kept + kept[:1] if chance.random() < part else kept
    if isinstance(value, int) and chance.random() < part:
        return chance.choice([0, 1, 2, 3, value + 1, -value])
    return value


@pytest.fixture(scope="module")
def events() -> list[Any]:
    (log,) = find_logs(LOG)
    return [json.loads(line) for line in log.lines()]


@pytest.mark.parametrize("seed", range(16))
def test_what_is_left_of_a_log_is_shown(events, tmp_path, seed):
    chance = random.Random(seed)
    part = chance.choice([0.0005, 0.003, 0.02])
    changed = [mutated(event, chance, part) for event in events if chance.random() > part]
    if seed % 4 == 0:
        chance.shuffle(changed)
    path = tmp_path / "log"
    path.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in changed), encoding="utf-8")
    history = History(read_application(EventLog("log", [path])), 20)
    text = history.to_text()
    assert text.count("is the critical path") + text.count("no task has run") == len(history.shown)
    assert "<b>" not in history.to_html().replace("&lt;b&gt;", "")


def test_lines_that_are_no_events_are_no_log(tmp_path):
    path = tmp_path / "log"
    path.write_text("".join(json.dumps(one) + "\n" for one in WEIRD), encoding="utf-8")
    with pytest.raises(NoEventLogError):
        read_application(EventLog("log", [path]))
