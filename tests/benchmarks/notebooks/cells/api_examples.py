"""Trying out one function after another, each on rows of its own."""

CONTROL = True
CELLS = [
    # 0
    """
import numpy as np
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.window import Window
""",
    # 1
    """
# aggregate
spark.range(6_000_000).select((F.col("id") % 7).alias("k"), F.xxhash64("id").alias("h")).groupBy("k").agg(
    F.count("*").alias("n"), F.max("h").alias("h")
).orderBy("k").show()
""",
    # 2
    """
# high cardinality
spark.range(3_000_000).groupBy((F.hash("id") % 400_000).alias("k")).count().groupBy("count").agg(
    F.count("*").alias("keys")
).orderBy("count").show(5)
""",
    # 3
    """
# join
a = spark.range(1_500_000).select("id", (F.col("id") * 31 % 1000).alias("x"))
b = spark.range(0, 3_000_000, 2).select("id", (F.col("id") % 13).alias("y"))
a.join(b, "id").groupBy("y").agg(F.sum("x").alias("x")).orderBy("y").toPandas()
""",
    # 4
    """
# window
w = Window.partitionBy("k").orderBy("v", "id")
v = spark.range(900_000).select("id", (F.col("id") % 5000).alias("k"), (F.hash("id", F.lit(3)) % 1000).alias("v"))
v.withColumn("r", F.row_number().over(w)).filter("r = 10").agg(F.count("*"), F.sum("v")).show()
""",
    # 5
    """
# explode
spark.range(150_000).select(
    "id", F.explode(F.sequence(F.lit(1), (F.col("id") % 20 + 1).cast("int"))).alias("e")
).groupBy("e").count().orderBy("e").show()
""",
    # 6
    """
# a Python function
@F.udf("int")
def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


spark.range(1, 60_000).select(collatz("id").alias("steps")).agg(F.max("steps"), F.sum("steps")).show()
""",
    # 7
    """
# a pandas function
@F.pandas_udf("double")
def wave(x: pd.Series) -> pd.Series:
    return np.sin(x * 0.001) ** 2


spark.range(2_000_000).select(wave("id").alias("y")).agg(F.round(F.avg("y"), 4).alias("mean")).show()
""",
    # 8
    """
# sort and take
spark.range(2_500_000).select("id", F.xxhash64("id", F.lit(7)).alias("h")).orderBy("h").limit(5).toPandas()
""",
    # 9
    """
# distinct texts
spark.range(1_500_000).select(F.md5((F.col("id") % 90_000).cast("string")).alias("m")).distinct().count()
""",
    # 10
    """
# JSON there and back
j = spark.range(400_000).select(F.to_json(F.struct("id", (F.col("id") % 10).alias("d"))).alias("j"))
j.select(F.from_json("j", "id long, d int").alias("s")).groupBy("s.d").count().orderBy("d").show()
""",
    # 11
    """
# RDDs still work
sc.parallelize(range(400_000), 4).map(lambda n: (n % 9, n)).reduceByKey(lambda x, y: x + y).sortByKey().collect()
""",
    # 12
    """
# a pandas frame
pdf = pd.DataFrame({"g": np.arange(200_000) % 50, "v": np.arange(200_000) * 0.5})
spark.createDataFrame(pdf).groupBy("g").agg(F.max("v").alias("v")).orderBy(F.desc("v")).show(5)
""",
    # 13
    """
# write
spark.range(2_000_000).select(
    "id", (F.col("id") % 4).alias("part"), F.sha1(F.col("id").cast("string")).alias("s")
).write.mode("overwrite").partitionBy("part").parquet("out/api/parts")
""",
    # 14
    """
# cube
spark.range(1_200_000).select((F.col("id") % 3).alias("a"), (F.col("id") % 4).alias("b"), F.lit(1).alias("one")).cube(
    "a", "b"
).agg(F.sum("one").alias("n")).orderBy("a", "b").show()
""",
    # 15
    """
# sets
spark.range(0, 1_200_000).intersect(spark.range(600_000, 1_800_000)).count()
""",
]
UNORDERED: set[int] = set()
