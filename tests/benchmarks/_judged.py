"""What a reader has said of the findings of jobs in which nobody has planted a fault, and why.

Times are those of two slots on one core; TPC-H is at scale 1.
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
}
"""By the notebook or the query, the rule, and the code of the line."""
