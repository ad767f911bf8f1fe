"""The story of a job: from the slots that it requires to the deployments into them."""

from __future__ import annotations

import re

from pyspark.sql import functions as F

import flinkmagic


def test_requirement_offer_and_deployment_follow_each_other(spark):
    counted = spark.range(0, 100, 1, 2).groupBy((F.col("id") % 3).alias("k")).count()
    job = flinkmagic.compile({"counted": counted}, parallelism=3).run()
    lines = [re.sub(r"^ *[\d.]+s +", "", line) for line in job.log()]
    assert [line.split("slots ", 1)[1].strip() for line in lines if "requires" in line or "goes to Spark" in line] == [
        "Source: Range -> Project -> HashAggregate requires 2 slots",
        "Source: Range -> Project -> HashAggregate goes to Spark, 2 tasks",
        "HashAggregate -> Sink: counted requires 3 slots",
        "HashAggregate -> Sink: counted goes to Spark, 3 tasks",
    ]
    offered = [match[1] for line in lines if (match := re.search(r"driver offers (\S+),", line))]
    deployed = [match[1] for line in lines if (match := re.search(r"deploy .* in (\S+) on driver", line))]
    assert len(offered) == 5
    assert offered == deployed
    assert lines[-1].endswith("the job is FINISHED")
    assert float(job.log()[0].split("s")[0]) == 0.0
