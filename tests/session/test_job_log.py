"""The story of a job: from the slots that it requires to the deployments into them."""

from __future__ import annotations

import re
from itertools import pairwise

from pyspark.sql import functions as F

import flinkmagic


def test_requirement_offer_match_and_deployment_follow_each_other(spark):
    counted = spark.range(0, 100, 1, 2).groupBy((F.col("id") % 3).alias("k")).count()
    job = flinkmagic.compile({"counted": counted}, parallelism=3).run()
    told = [re.match(r" *([\d.]+)s  (.{16}) (.*)", line).groups() for line in job.log()]
    lines = [f"{source.strip()}: {text}" for _, source, text in told]
    job_id, slots = job.info().job_id, spark.sparkContext.defaultParallelism
    beginning = [
        f"dispatcher: job {job_id} (job) is submitted",
        f"job manager: leads job {job_id}",
        f"resource manager: the master of job {job_id} registers",
        f"resource manager: job {job_id} requires 2 slots, the session has {slots}",
    ]
    assert lines[:4] == beginning
    assert [line for line in lines if re.match("slots: .*(requires|goes to Spark)", line)] == [
        "slots: Source: Range -> Project -> HashAggregate requires 2 slots",
        "slots: Source: Range -> Project -> HashAggregate goes to Spark, 2 tasks",
        "slots: HashAggregate -> Sink: counted requires 3 slots",
        "slots: HashAggregate -> Sink: counted goes to Spark, 3 tasks",
    ]
    # What falls in between is a task's end: two tasks of a vertex may end together or one after the other.
    declared = [int(found[1]) for line in lines if (found := re.match(r"slot pool: declare (\d+) required", line))]
    assert [now for before, now in pairwise([0, *declared]) if now > before] == [2, 3]
    assert declared[-1] == 0
    chain = [line for line in lines if re.match(r"slots: driver offers|slot pool: .* gets|scheduler: deploy", line)]
    slot_of = [re.search(r"driver_\d+#\d+", line)[0] for line in chain]
    assert len(chain) == 3 * 5
    for offer in range(0, 15, 3):
        assert [line.split(":")[0] for line in chain[offer : offer + 3]] == ["slots", "slot pool", "scheduler"]
        assert len(set(slot_of[offer : offer + 3])) == 1
    assert lines.count("job master: driver registers") == 1
    assert "scheduler: the job is FINISHED" in lines
    assert told[0][0] == "0.000"
