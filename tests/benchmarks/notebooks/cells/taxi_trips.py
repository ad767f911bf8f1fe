"""A first look at three months of taxi trips: hours, tips, zones, routes."""

CELLS = [
    # 0
    """
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.window import Window
""",
    # 1
    """
trips = spark.read.parquet("data/trips/yellow_tripdata")
zones = spark.read.csv("data/trips/taxi_zone_lookup.csv", header=True, inferSchema=True)
trips.printSchema()
zones.show(5)
""",
    # 2
    """
print("rows:", trips.count(), "columns:", len(trips.columns))
trips.show(5)
""",
    # 3
    """
trips.select("passenger_count", "trip_distance", "fare_amount", "tip_amount", "total_amount").describe().show()
""",
    # 4
    """
# missing values
trips.select([F.sum(F.col(c).isNull().cast("int")).alias(c) for c in trips.columns]).toPandas().T
""",
    # 5
    """
df = (
    trips.withColumn(
        "duration_min", (F.unix_timestamp("tpep_dropoff_datetime") - F.unix_timestamp("tpep_pickup_datetime")) / 60
    )
    .withColumn("pickup_hour", F.hour("tpep_pickup_datetime"))
    .withColumn("weekday", F.dayofweek("tpep_pickup_datetime"))
    .withColumn("pickup_date", F.to_date("tpep_pickup_datetime"))
)
clean = df.filter(
    (F.col("fare_amount") > 0)
    & (F.col("trip_distance") > 0)
    & (F.col("duration_min").between(1, 180))
    & F.col("passenger_count").isNotNull()
    & (F.col("passenger_count") > 0)
)
before, after = df.count(), clean.count()
print(f"{before - after} of {before} rows dropped ({100 * (before - after) / before:.2f} %)")
""",
    # 6
    """
by_hour = (
    clean.groupBy("pickup_hour")
    .agg(
        F.count("*").alias("trips"),
        F.round(F.avg("fare_amount"), 2).alias("avg_fare"),
        F.round(F.avg("duration_min"), 2).alias("avg_min"),
    )
    .orderBy("pickup_hour")
    .toPandas()
)
by_hour
""",
    # 7
    """
by_hour.set_index("pickup_hour")["trips"].idxmax(), by_hour["trips"].sum()
""",
    # 8
    """
clean.groupBy("weekday").agg(F.count("*").alias("trips"), F.round(F.avg("trip_distance"), 3).alias("miles")).orderBy(
    "weekday"
).show()
""",
    # 9
    """
# how do people pay, and do they tip
clean = clean.withColumn(
    "tip_pct", F.when(F.col("fare_amount") > 0, 100 * F.col("tip_amount") / F.col("fare_amount"))
)
clean.groupBy("payment_type").agg(
    F.count("*").alias("n"),
    F.round(F.avg("tip_pct"), 2).alias("tip_pct"),
    F.round(F.sum("total_amount"), 0).alias("revenue"),
).orderBy("payment_type").show()
""",
    # 10
    """
clean.filter("payment_type = 1").groupBy("pickup_hour").agg(F.round(F.avg("tip_pct"), 2).alias("tip_pct")).orderBy(
    F.desc("tip_pct"), "pickup_hour"
).show(5)
""",
    # 11
    """
pu = zones.select(
    F.col("LocationID").alias("PULocationID"), F.col("Borough").alias("pu_borough"), F.col("Zone").alias("pu_zone")
)
do = zones.select(
    F.col("LocationID").alias("DOLocationID"), F.col("Borough").alias("do_borough"), F.col("Zone").alias("do_zone")
)
routes = clean.join(pu, "PULocationID", "left").join(do, "DOLocationID", "left")
routes.count()
""",
    # 12
    """
routes.groupBy("pu_zone").count().orderBy(F.desc("count"), "pu_zone").show(10)
""",
    # 13
    """
routes.groupBy("pu_borough").pivot("do_borough").count().orderBy("pu_borough").show()
""",
    # 14
    """
top_routes = (
    routes.groupBy("pu_zone", "do_zone")
    .agg(F.count("*").alias("n"), F.round(F.avg("fare_amount"), 2).alias("fare"))
    .orderBy(F.desc("n"), "pu_zone", "do_zone")
)
top_routes.limit(10).toPandas()
""",
    # 15
    """
# busiest hour of each borough
w = Window.partitionBy("pu_borough").orderBy(F.desc("n"), "pickup_hour")
(
    routes.groupBy("pu_borough", "pickup_hour")
    .agg(F.count("*").alias("n"))
    .withColumn("rank", F.row_number().over(w))
    .filter("rank = 1")
    .orderBy("pu_borough")
    .show()
)
""",
    # 16
    """
q = clean.approxQuantile("fare_amount", [0.25, 0.5, 0.75], 0.0)
limit = q[2] + 3 * (q[2] - q[0])
print(q, "outliers above", round(limit, 2), ":", clean.filter(F.col("fare_amount") > limit).count())
""",
    # 17
    """
@F.udf("string")
def time_of_day(hour):
    if hour < 6:
        return "night"
    if hour < 12:
        return "morning"
    return "afternoon" if hour < 18 else "evening"


clean.withColumn("part", time_of_day("pickup_hour")).groupBy("part").agg(
    F.count("*").alias("n"), F.round(F.avg("trip_distance"), 3).alias("miles")
).orderBy("part").show()
""",
    # 18
    """
daily = (
    clean.groupBy("pickup_date")
    .agg(F.count("*").alias("trips"), F.round(F.sum("total_amount"), 1).alias("revenue"))
    .orderBy("pickup_date")
    .toPandas()
)
daily["trips_7d"] = daily["trips"].rolling(7).mean().round(1)
daily.tail(8)
""",
    # 19
    """
clean.groupBy("VendorID", "RatecodeID").agg(
    F.count("*").alias("n"), F.round(F.avg("duration_min"), 2).alias("minutes")
).orderBy("VendorID", "RatecodeID").show()
""",
    # 20
    """
zone_day = routes.groupBy("pickup_date", "pu_borough", "pu_zone").agg(
    F.count("*").alias("trips"), F.round(F.sum("total_amount"), 2).alias("revenue")
)
zone_day.write.mode("overwrite").partitionBy("pu_borough").parquet("out/trips/zone_day")
""",
    # 21
    """
back = spark.read.parquet("out/trips/zone_day")
print(back.count())
back.groupBy("pu_borough").agg(F.sum("trips").alias("trips")).orderBy(F.desc("trips")).show()
""",
    # 22
    """
round(clean.filter("payment_type = 1").stat.corr("trip_distance", "tip_amount"), 4)
""",
]
# 1, 2: first rows of a frame with no order; 3: every digit of a mean or stddev
UNORDERED = {1, 2, 3}
