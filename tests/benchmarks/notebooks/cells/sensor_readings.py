"""Readings of a building's sensors: cleaning, windows over time, pandas."""

CELLS = [
    # 0
    """
import numpy as np
import pandas as pd
from pyspark.sql import Window
from pyspark.sql import functions as F
""",
    # 1
    """
readings = spark.read.option("header", "true").option("inferSchema", "true").csv("data/sensors/readings")
devices = spark.read.option("header", "true").option("inferSchema", "true").csv("data/sensors/devices.csv")
readings.printSchema()
""",
    # 2
    """
readings.show(5)
print(readings.count(), readings.select("device_id").distinct().count())
""",
    # 3
    """
readings.select(F.min("ts"), F.max("ts")).show(truncate=False)
readings.groupBy("status").count().orderBy("status").show()
""",
    # 4
    """
readings.summary("count", "min", "25%", "75%", "max").show()
""",
    # 5
    """
readings.select([F.count(F.when(F.col(c).isNull(), 1)).alias(c) for c in readings.columns]).show()
""",
    # 6
    """
good = readings.dropna(subset=["temperature"]).filter("status <> 'ERR'").dropDuplicates(["device_id", "ts"])
good.count()
""",
    # 7
    """
# gaps: a sensor should report every 15 minutes
w = Window.partitionBy("device_id").orderBy("ts")
gaps = good.withColumn("prev", F.lag("ts").over(w)).withColumn(
    "gap_s", F.col("ts").cast("long") - F.col("prev").cast("long")
)
gaps.filter("gap_s > 1800").count()
""",
    # 8
    """
gaps.filter("gap_s > 1800").groupBy("device_id").agg(
    F.count("*").alias("gaps"), F.max("gap_s").alias("longest")
).orderBy(F.desc("gaps"), "device_id").show(10)
""",
    # 9
    """
# rolling mean of two hours, and what is far from it
w8 = Window.partitionBy("device_id").orderBy("ts").rowsBetween(-8, 0)
rolled = (
    good.withColumn("roll_mean", F.avg("temperature").over(w8))
    .withColumn("roll_std", F.stddev("temperature").over(w8))
    .withColumn("diff", F.abs(F.col("temperature") - F.col("roll_mean")))
)
spikes = rolled.filter("diff > 8")
print("spikes:", spikes.count())
""",
    # 10
    """
spikes.groupBy("device_id").count().orderBy(F.desc("count"), "device_id").show(5)
""",
    # 11
    """
spikes.select("device_id", "ts", "temperature", F.round("roll_mean", 2).alias("roll_mean")).orderBy(
    "ts", "device_id"
).limit(8).toPandas()
""",
    # 12
    """
clean = rolled.filter("diff <= 8").join(devices, "device_id")
clean.groupBy("floor").agg(
    F.round(F.avg("temperature"), 3).alias("temp"),
    F.round(F.avg("humidity"), 3).alias("hum"),
    F.round(F.avg("co2"), 2).alias("co2"),
).orderBy("floor").show()
""",
    # 13
    """
clean.groupBy("model").agg(
    F.count("*").alias("n"), F.round(F.stddev("temperature"), 3).alias("sd"), F.min("battery").alias("battery")
).orderBy("model").show()
""",
    # 14
    """
hourly = (
    clean.groupBy("room", F.window("ts", "1 hour").alias("win"))
    .agg(F.round(F.avg("temperature"), 3).alias("temp"), F.max("co2").alias("co2"))
    .select("room", F.col("win.start").alias("hour"), "temp", "co2")
)
hourly.count()
""",
    # 15
    """
pdf = hourly.filter("room = 'room 07'").orderBy("hour").toPandas()
pdf.set_index("hour")["temp"].resample("1D").mean().round(2).head(7)
""",
    # 16
    """
hourly.groupBy(F.hour("hour").alias("h")).agg(
    F.round(F.avg("temp"), 3).alias("temp"), F.max("co2").alias("co2")
).orderBy("h").toPandas().T
""",
    # 17
    """
hourly.filter("co2 > 1200").groupBy("room").count().orderBy(F.desc("count"), "room").show(5)
""",
    # 18
    """
# a straight line through each device's battery
def slope(pdf):
    x = (pdf["ts"] - pdf["ts"].min()).dt.total_seconds() / 86400
    return pd.DataFrame(
        {"device_id": [pdf["device_id"].iloc[0]], "per_day": [round(float(np.polyfit(x, pdf["battery"], 1)[0]), 4)]}
    )


slopes = (
    good.select("device_id", "ts", "battery")
    .groupBy("device_id")
    .applyInPandas(slope, "device_id string, per_day double")
)
slopes.orderBy("per_day", "device_id").show(5)
""",
    # 19
    """
slopes.agg(
    F.round(F.avg("per_day"), 3).alias("mean"), F.count(F.when(F.col("per_day") < -1.1, 1)).alias("fast")
).show()
""",
    # 20
    """
hourly.withColumn("day", F.to_date("hour")).write.mode("overwrite").partitionBy("day").parquet("out/sensors/hourly")
spikes.select("device_id", "ts", "temperature").coalesce(1).write.mode("overwrite").csv(
    "out/sensors/spikes", header=True
)
""",
    # 21
    """
back = spark.read.parquet("out/sensors/hourly")
back.groupBy("day").agg(F.countDistinct("room").alias("rooms"), F.count("*").alias("n")).orderBy("day").show(5)
""",
]
# 2: first rows of a frame with no order; 4: approximate quartiles
UNORDERED = {2, 4}
EXPERT = {
    1: ("readings.printSchema()", "readings.cache()\nreadings.printSchema()"),
}
