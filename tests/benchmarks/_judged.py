"""What a reader has said of the findings of jobs in which nobody has planted a fault, and why.

Times are those of two slots on one core; TPC-H is at scale 1. Where a load is told of, other programs had most of the
two cores: what costs a tenth of a second otherwise then takes one.
"""

from __future__ import annotations

from typing import NamedTuple


class Verdict(NamedTuple):
    """What a reader has said of a finding."""

    is_wrong: bool
    """Whether its cause is not true, or its cure does not help."""
    why: str


VERDICTS: dict[tuple[str, str, str], Verdict] = {
    (
        "q03",
        "small-side-shuffled",
        'spark.sql("""SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, '
        "o_orderdate, o_shippriority",
    ): Verdict(False, "with customers and orders broadcast 3.1 s in place of 5.0"),
    (
        "q05",
        "small-side-shuffled",
        'spark.sql("""SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue',
    ): Verdict(False, "with customers and orders broadcast 4.9 s in place of 8.6"),
    ("q12", "small-side-shuffled", 'spark.sql("""SELECT l_shipmode,'): Verdict(
        False, "with BROADCAST(lineitem) 3.4 s in place of 4.9"
    ),
    (
        "03-failure-and-resume",
        "failed-tasks",
        'hours.select("hour", checked("delay").alias("delay")).write.mode("overwrite").parquet("out/hours")',
    ): Verdict(False, "the function raises once, on purpose; --errors says so"),
    (
        "03-failure-and-resume",
        "failed-tasks",
        'means = flights.groupBy("carrier").agg(F.avg("dep_delay").alias("delay"))',
    ): Verdict(False, "the executor is killed, on purpose; of both attempts it was said that they had failed"),
    (
        "03-failure-and-resume",
        "python-functions",
        'flights = spark.read.parquet("data/flights.parquet").withColumn("minutes", by_day("hour", "air_time"))',
    ): Verdict(
        False, "an F.aggregate over hours makes the same; 60,000 rows take 8 to 22 s in place of 33 to 62 (busy)"
    ),
    (
        "03-failure-and-resume",
        "idle-slots",
        'hours.groupBy("dest").agg(F.sum("hours").alias("hours")).write.mode("overwrite").parquet("out/dests")',
    ): Verdict(True, "1.1 s, on a machine with a load of 15, where the job's other stages waited for up to 0.8 s"),
    (
        "05-streaming",
        "idle-slots",
        'by_origin.where("delay > 15").write.mode("append").json("out/late_months")',
    ): Verdict(True, "of 2.6 s the other write had both slots for 1.8; untold since only idle slots count"),
    ("06-iterations", "failed-tasks", ""): Verdict(
        False, "the function raises once, on purpose; of a loop no line is known"
    ),
    ("06-iterations", "straggling-task", ""): Verdict(
        True, "8 rows; 2.4 s of 4.1 are the start of a worker, with a load of 12; the other task found one"
    ),
    (
        "06-iterations",
        "idle-slots",
        'seasons.select(season).groupBy("month").count().write.mode("overwrite").json(f"out/{season}")',
    ): Verdict(True, "1.1 s, with a load of 12; untold since slots must idle for a second on average"),
    (
        "06-iterations",
        "spill",
        'train, test = on_time.withColumn("chance", F.rand()).randomSplit([0.8, 0.2])',
    ): Verdict(
        True, "sorts of rows so wide spill in 6 to 10 ms a MiB: 15.9 MiB take 0.1 to 0.2 s, not 0.8; untold since"
    ),
    (
        "04-sharing",
        "python-functions",
        'rated_flights = flown.withColumn("sky", rated("visib", "wind_gust", "precip"))',
    ): Verdict(False, "three comparisons: F.when makes the same; the join has 981,012 rows, as the finding says"),
    (
        "branch_deliveries",
        "python-functions",
        'cork.withColumn("bonus", bonus("minutes", "output")).groupBy((F.col("machine") % 10).alias("line")).agg(',
    ): Verdict(False, "a quotient, a least and a round: F.when, F.least and F.round make the same"),
    (
        "api_examples",
        "python-functions",
        'spark.range(1, 60_000).select(collatz("id").alias("steps")).agg(F.max("steps"), F.sum("steps")).show()',
    ): Verdict(False, "the time is there; no built-in does it, but a function of whole columns can (not tried)"),
    (
        "api_examples",
        "python-functions",
        'spark.range(2_000_000).select(wave("id").alias("y")).agg(F.round(F.avg("y"), 4).alias("mean")).show()',
    ): Verdict(False, "F.pow(F.sin(...), 2) makes the same"),
    (
        "api_examples",
        "idle-slots",
        'a.join(b, "id").groupBy("y").agg(F.sum("x").alias("x")).orderBy("y").toPandas()',
    ): Verdict(True, "1.6 s, with a load of 17, where the job's other stage waited for 0.7 s; untold since"),
    (
        "loans_eda",
        "garbage-collection",
        'df.crosstab("grade", "loan_status").orderBy("grade_loan_status").show()',
    ): Verdict(
        True,
        "8 GB do not help: 3 tables of 400,000 such rows in 10 collections of 2.7 s, with 2 GB in 8 of 1.3 (load 23)",
    ),
    ("loans_eda", "idle-slots", 'df.groupBy("grade").agg('): Verdict(
        True, "1.3 s between its two stages, with a load of 28; planning and the sampling of seven rows"
    ),
    (
        "ecommerce_etl",
        "python-functions",
        'customers = customers.withColumn("email_domain", domain_udf("email"))',
    ): Verdict(False, "F.lower(F.substring_index(...)) makes the same"),
    (
        "ecommerce_etl",
        "python-functions",
        'banded = lines.withColumn("band", band("unit_price", "quantity"))',
    ): Verdict(False, "four bands: F.when makes the same"),
    ("articles_text", "python-functions", 'stems = content.withColumn("stem", stem_udf("word"))'): Verdict(
        False, "F.regexp_replace makes the same, but for words that are an ending"
    ),
    (
        "taxi_trips",
        "python-functions",
        'clean.withColumn("part", time_of_day("pickup_hour")).groupBy("part").agg(',
    ): Verdict(False, "four parts of the day: F.when makes the same"),
    ("movie_ratings", "tiny-tasks", ""): Verdict(
        False, "ten blocks of users by ten of films: with ALS(numUserBlocks=2, numItemBlocks=2) 0.7 s in place of 1.8"
    ),
    (
        "web_logs",
        "python-functions",
        'host_day_df = logs_df.select(logs_df.host, F.dayofmonth("time").alias("day"))',
    ): Verdict(False, "F.to_timestamp(..., 'dd/MMM/yyyy:HH:mm:ss Z') makes the same"),
    (
        "web_logs",
        "python-functions",
        'logs_df = logs_df.filter(col("status").isNotNull()).na.fill({"content_size": 0})',
    ): Verdict(False, "the same function, of another action"),
    (
        "web_logs",
        "input-read-again",
        'host_day_df = logs_df.select(logs_df.host, F.dayofmonth("time").alias("day"))',
    ): Verdict(False, "31 MB of text are read and parsed twice, of which 1.5 s are the function that parses times"),
    (
        "sensor_readings",
        "not-kept",
        'hourly.withColumn("day", F.to_date("hour")).write.mode("overwrite").partitionBy("day").parquet('
        '"out/sensors/hourly")',
    ): Verdict(False, "`good`, which drops duplicates, was kept anew with more columns: rows made of it may differ"),
    (
        "sensor_readings",
        "not-kept",
        'spikes.select("device_id", "ts", "temperature").coalesce(1).write.mode("overwrite").csv(',
    ): Verdict(False, "`good`, which drops duplicates, was kept anew with more columns: rows made of it may differ"),
    (
        "03-failure-and-resume",
        "straggling-task",
        'means.select("carrier", slowly("delay").alias("delay")).write.mode("overwrite").parquet("out/carriers")',
    ): Verdict(True, "the executor is killed, on purpose; its successor starts Python workers for that task"),
    ("q21", "spill", 'spark.sql("""SELECT s_name, count(*) AS numwait'): Verdict(
        False, "with 16 partitions 4.0 s in place of 4.4, with 6 GB 3.7"
    ),
}
"""By the notebook or the query, the rule, and the code of the line."""
