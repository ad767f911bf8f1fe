"""Runs actions as a session with the mode on does, and reads in Spark's own status store what that made Spark run."""

from __future__ import annotations

import textwrap
from collections import Counter

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.session import SessionActions

CELL_FILE = "/tmp/ipykernel_1/4242.py"


class Ran:
    """What Spark has run since this object was made: by stage the number of tasks that succeeded."""

    def __init__(self, spark):
        self._sc = spark.sparkContext
        self._store = self._sc._jsc.sc().statusStore()
        self._before = self._job_ids()

    def tasks(self):
        done = Counter()
        nothing = self._sc._jvm.java.util.ArrayList()
        quantiles = self._sc._gateway.new_array(self._sc._jvm.double, 0)
        for stage in self._stages(self._job_ids() - self._before):
            attempts = self._store.stageData(stage, False, nothing, False, quantiles)
            for number in range(attempts.size()):
                done[stage] += attempts.apply(number).numCompleteTasks()
        return sorted(tasks for tasks in done.values() if tasks)

    def _jobs(self):
        self._sc._jsc.sc().listenerBus().waitUntilEmpty()
        jobs = self._store.jobsList(None)
        return [jobs.apply(number) for number in range(jobs.size())]

    def _job_ids(self):
        return {job.jobId() for job in self._jobs()}

    def _stages(self, job_ids):
        jobs = [job for job in self._jobs() if job.jobId() in job_ids]
        return {stage for job in jobs for stage in map(job.stageIds().apply, range(job.stageIds().size()))}


class Session:
    """Runs lines plainly, or as a cell whose actions are carried out through the machine."""

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
        with flinkmagic.capture(self.spark, location=cell, namespace=self.namespace, on_action=self.actions.run):
            return self._run(source)

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
def session(spark):
    return Session(spark)
