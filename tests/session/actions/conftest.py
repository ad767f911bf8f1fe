"""Runs actions as a session with the mode on does, and reads in Spark's own status store what that made Spark run."""

from __future__ import annotations

import math
import textwrap

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.capturing.capture_listener import CaptureListener
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.reuse import durable_rows, durable_store, result_keys, retained_answers
from flinkmagic.session import SessionActions
from tests.status_store import StatusStore

CELL_FILE = "/tmp/ipykernel_1/4242.py"


@pytest.fixture(autouse=True)
def no_findings(monkeypatch):
    """However slow the machine is, no line tells what lost its time: tests compare all that a line tells."""
    monkeypatch.setattr("flinkmagic.session.actions.action_graph.LONG_MS", math.inf)


class Ran:
    """What Spark has run since this object was made: by stage the number of tasks that succeeded."""

    def __init__(self, spark):
        self._status = StatusStore(spark)
        self._before = self._status.jobs()

    def tasks(self):
        ids = [job.stageIds() for job in self._status.since(self._before)]
        stages = {some.apply(place) for some in ids for place in range(some.size())}
        done = [self._status.store.lastStageAttempt(stage).numCompleteTasks() for stage in stages]
        return sorted(tasks for tasks in done if tasks)


class Session(CaptureListener):
    """Runs lines plainly, or as a cell whose actions are carried out through the machine."""

    knows_schemas = False
    """Whether what Spark has inferred from files is known when they are read again."""

    def __init__(self, spark, **options):
        self.spark = spark
        self.actions = SessionActions(**options)
        self.namespace = {"spark": spark, "F": F}
        self.ran = Ran(spark)

    def plain(self, source):
        """Run lines without the machine; return the value of the last one."""
        return self._run(source)

    def cell(self, source):
        """Run lines as a cell of the session; return the value of the last one."""
        source = textwrap.dedent(source)
        self.ran = Ran(self.spark)
        cell = CellSource("cell 3", CELL_FILE, source)
        with flinkmagic.capture(self.spark, location=cell, namespace=self.namespace, listener=self):
            return self._run(source)

    def act(self, call):
        return self.actions.run(call)

    def read(self, call):
        return self.actions.read(call) if self.knows_schemas else super().read(call)

    def cached(self, df, text):
        self.actions.cached(df, text)

    def _run(self, source):
        *lines, last = textwrap.dedent(source).strip().splitlines()
        text = "\n".join([*lines, f"answer = ({last})"])
        exec(compile(text, CELL_FILE, "exec"), self.namespace)
        return self.namespace.pop("answer")

    @property
    def report(self):
        """What became of the last action."""
        return self.actions.reports[-1]


@pytest.fixture
def session(spark, monkeypatch):
    """A session that computes each answer, if only by its last stage."""
    monkeypatch.setattr(retained_answers, "LARGEST", 0)
    return Session(spark)


@pytest.fixture
def answering(spark):
    """A session that gives small answers again, and knows what Spark has inferred from files."""
    session = Session(spark)
    session.knows_schemas = True
    return session


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A durable store that takes whatever is to be stored, soon."""
    monkeypatch.setattr(durable_store, "WRITE_S", -1e9)
    monkeypatch.setattr(durable_rows, "WRITE_S", -1e9)
    monkeypatch.setattr(durable_rows, "QUIET_S", 0.05)
    monkeypatch.setattr(result_keys, "SETTLED_S", -3600)
    return durable_store.durable_store(tmp_path / "store")
