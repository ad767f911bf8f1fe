"""Analysis of a web server's access logs, as in the well-known course."""

CELLS = [
    # 0
    """
import re
from datetime import datetime

from pyspark.sql import functions as F
from pyspark.sql.functions import col, regexp_extract, udf
from pyspark.sql.types import TimestampType
""",
    # 1
    """
base_df = spark.read.text("data/weblog/*.log")
base_df.printSchema()
base_df.show(5, truncate=False)
""",
    # 2
    """
print((base_df.count(), len(base_df.columns)))
""",
    # 3
    r"""
host_pattern = r"(^\S+\.[\S+\.]+\S+)\s"
ts_pattern = r"\[(\d{2}/\w{3}/\d{4}:\d{2}:\d{2}:\d{2} -\d{4})\]"
method_uri_protocol_pattern = r"\"(\S+)\s(\S+)\s*(\S*)\""
status_pattern = r"\s(\d{3})\s"
content_size_pattern = r"\s(\d+)$"

logs_df = base_df.select(
    regexp_extract("value", host_pattern, 1).alias("host"),
    regexp_extract("value", ts_pattern, 1).alias("timestamp"),
    regexp_extract("value", method_uri_protocol_pattern, 1).alias("method"),
    regexp_extract("value", method_uri_protocol_pattern, 2).alias("endpoint"),
    regexp_extract("value", method_uri_protocol_pattern, 3).alias("protocol"),
    F.expr(r"try_cast(regexp_extract(value, '\\s(\\d{3})\\s', 1) as int)").alias("status"),
    F.expr(r"try_cast(regexp_extract(value, '\\s(\\d+)$', 1) as int)").alias("content_size"),
)
logs_df.show(10, truncate=True)
print((logs_df.count(), len(logs_df.columns)))
""",
    # 4
    """
# lines that did not parse
bad_rows_df = logs_df.filter(
    (col("host") == "")
    | (col("timestamp") == "")
    | (col("method") == "")
    | col("status").isNull()
    | col("content_size").isNull()
)
bad_rows_df.count()
""",
    # 5
    """
def count_null(col_name):
    return F.sum(F.col(col_name).isNull().cast("integer")).alias(col_name)


logs_df.agg(*[count_null(c) for c in logs_df.columns]).show()
""",
    # 6
    r"""
null_content_size_df = base_df.filter(~base_df["value"].rlike(r"\s\d+$"))
print(null_content_size_df.count())
null_content_size_df.filter(~col("value").endswith("-")).groupBy("value").count().orderBy(
    F.desc("count"), "value"
).show(5, truncate=False)
""",
    # 7
    """
logs_df = logs_df.filter(col("status").isNotNull()).na.fill({"content_size": 0})

month_map = {
    "Jan": 1,
    "Feb": 2,
    "Mar": 3,
    "Apr": 4,
    "May": 5,
    "Jun": 6,
    "Jul": 7,
    "Aug": 8,
    "Sep": 9,
    "Oct": 10,
    "Nov": 11,
    "Dec": 12,
}


def parse_clf_time(text):
    return "{0:04d}-{1:02d}-{2:02d} {3}".format(int(text[7:11]), month_map[text[3:6]], int(text[0:2]), text[12:20])


u_parse_time = udf(parse_clf_time)
logs_df = logs_df.select("*", u_parse_time(logs_df["timestamp"]).cast("timestamp").alias("time")).drop("timestamp")
logs_df.printSchema()
logs_df.limit(5).toPandas()
""",
    # 8
    """
logs_df.select(
    F.min("content_size"), F.max("content_size"), F.round(F.avg("content_size"), 2), F.count("content_size")
).toPandas()
""",
    # 9
    """
status_freq_df = logs_df.groupBy("status").count().sort("status")
print("Total distinct HTTP Status Codes:", status_freq_df.count())
status_freq_df.toPandas()
""",
    # 10
    """
host_sum_df = logs_df.groupBy("host").count().sort(F.desc("count"), "host")
host_sum_df.filter(col("count") > 10).show(10, truncate=False)
""",
    # 11
    """
paths_df = logs_df.groupBy("endpoint").count().sort(F.desc("count"), "endpoint").limit(20)
paths_df.toPandas()
""",
    # 12
    """
not200_df = logs_df.filter(logs_df["status"] != 200)
not200_df.groupBy("endpoint").count().sort(F.desc("count"), "endpoint").show(10, truncate=False)
""",
    # 13
    """
unique_host_count = logs_df.select("host").distinct().count()
unique_host_count
""",
    # 14
    """
host_day_df = logs_df.select(logs_df.host, F.dayofmonth("time").alias("day"))
daily_hosts_df = (
    host_day_df.dropDuplicates().groupBy("day").count().select("day", col("count").alias("unique_hosts")).sort("day")
)
daily_hosts_df.show(31)
""",
    # 15
    """
total_daily_reqests_df = logs_df.select(F.dayofmonth("time").alias("day")).groupBy("day").count()
avg_daily = (
    total_daily_reqests_df.join(daily_hosts_df, "day")
    .select("day", F.round(col("count") / col("unique_hosts"), 3).alias("avg_reqs_per_host"))
    .sort("day")
)
avg_daily.toPandas()
""",
    # 16
    """
not_found_df = logs_df.filter(logs_df["status"] == 404)
print("Total 404 responses:", not_found_df.count())
""",
    # 17
    """
endpoints_404_count_df = not_found_df.groupBy("endpoint").count().sort(F.desc("count"), "endpoint")
endpoints_404_count_df.show(20, truncate=False)
""",
    # 18
    """
not_found_df.groupBy("host").count().sort(F.desc("count"), "host").show(20, truncate=False)
""",
    # 19
    """
errors_by_date = not_found_df.groupBy(F.dayofmonth("time").alias("day")).count().sort("day")
errors_by_date.toPandas().set_index("day").T
""",
    # 20
    """
not_found_df.groupBy(F.hour("time").alias("hour")).count().sort("hour").toPandas()
""",
    # 21
    """
logs_df.groupBy("method", "status").count().write.mode("overwrite").csv("out/weblog/summary", header=True)
spark.read.csv("out/weblog/summary", header=True, inferSchema=True).agg(F.sum("count")).show()
""",
]
# 1, 3, 7: first rows of a frame with no order
UNORDERED = {1, 3, 7}
EXPERT = {
    3: ("logs_df.show(10, truncate=True)", "logs_df.cache()\nlogs_df.show(10, truncate=True)"),
    7: ("logs_df.printSchema()", "logs_df.cache()\nlogs_df.printSchema()"),
}
