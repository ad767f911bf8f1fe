"""A month's end: the deliveries of twelve branches, each another file and another question."""

CONTROL = True
CELLS = [
    # 0
    """
from pyspark.sql import functions as F
from pyspark.sql.window import Window

INVOICE = "invoice long, customer int, date date, net double, vat int, clerk string, remark string"
STOCK = "sku string, warehouse string, moved date, quantity int"
""",
    # 1
    """
berlin = spark.read.csv("data/branches/invoices_berlin.csv", header=True, schema=INVOICE)
berlin.groupBy("vat").agg(F.count("*").alias("n"), F.round(F.sum("net"), 2).alias("net")).orderBy("vat").show()
""",
    # 2
    """
lyon = spark.read.csv("data/branches/invoices_lyon.csv", header=True, schema=INVOICE)
lyon = lyon.withColumn("gross", F.round(F.col("net") * (1 + F.col("vat") / 100), 2)).withColumn(
    "month", F.date_format("date", "yyyy-MM")
)
lyon.groupBy("month").agg(
    F.round(F.sum("gross"), 2).alias("gross"), F.countDistinct("customer").alias("customers")
).orderBy("month").toPandas()
""",
    # 3
    """
porto = spark.read.csv("data/branches/invoices_porto.csv", header=True, schema=INVOICE)
w = Window.partitionBy("clerk").orderBy(F.desc("net"), "invoice")
porto.withColumn("rank", F.row_number().over(w)).filter("rank <= 1").orderBy("clerk").select(
    "clerk", "invoice", "net"
).show(40)
""",
    # 4
    """
ghent = spark.read.csv("data/branches/invoices_ghent.csv", header=True, schema=INVOICE)
ghent.filter("remark = 'disputed'").select("invoice", "customer", "date", "net").write.mode("overwrite").parquet(
    "out/branches/disputed_ghent"
)
""",
    # 5
    """
oslo = spark.read.json("data/branches/stock_oslo.json", schema=STOCK)
oslo.groupBy("warehouse").pivot("warehouse", ["north", "south", "harbour"]).agg(F.sum("quantity")).orderBy(
    "warehouse"
).show()
""",
    # 6
    """
turin = spark.read.json("data/branches/stock_turin.json", schema=STOCK)
level = turin.withColumn(
    "level",
    F.sum("quantity").over(Window.partitionBy("sku").orderBy("moved").rangeBetween(Window.unboundedPreceding, 0)),
)
level.groupBy("warehouse").agg(F.min("level").alias("lowest"), F.max("level").alias("highest")).orderBy(
    "warehouse"
).show()
""",
    # 7
    """
graz = spark.read.json("data/branches/stock_graz.json", schema=STOCK)
graz.groupBy("sku").agg(F.sum("quantity").alias("q"), F.max("moved").alias("last")).filter("q < -200").orderBy(
    "q", "sku"
).limit(10).toPandas()
""",
    # 8
    """
malmo = spark.read.parquet("data/branches/shifts_malmo")
malmo.groupBy("shift", F.month("begun").alias("m")).agg(
    F.sum("output").alias("output"), F.countDistinct("employee").alias("staff")
).orderBy("shift", "m").show(20)
""",
    # 9
    """
zagreb = spark.read.parquet("data/branches/shifts_zagreb")
busy = (
    zagreb.groupBy("employee", F.weekofyear("begun").alias("week"))
    .agg(F.sum("minutes").alias("minutes"))
    .filter("minutes > 4000")
)
busy.groupBy("week").count().orderBy("week").show(30)
""",
    # 10
    """
@F.udf("double")
def bonus(minutes, output):
    per_hour = output / (minutes / 60.0)
    return round(min(per_hour, 40.0) * 0.35, 2) if per_hour > 12 else 0.0


cork = spark.read.parquet("data/branches/shifts_cork").filter("shift = 'night'")
cork.withColumn("bonus", bonus("minutes", "output")).groupBy((F.col("machine") % 10).alias("line")).agg(
    F.round(F.sum("bonus"), 2).alias("bonus")
).orderBy("line").show()
""",
    # 11
    """
basel = spark.read.parquet("data/branches/shifts_basel")
w = Window.partitionBy("machine").orderBy("begun")
idle = basel.withColumn("idle", F.col("begun").cast("long") - F.lag("begun").over(w).cast("long"))
idle.agg(F.max("idle").alias("longest"), F.expr("percentile(idle, 0.5)").alias("median")).show()
""",
    # 12
    """
tartu = spark.read.parquet("data/branches/shifts_tartu")
tartu.repartition("shift").sortWithinPartitions("begun", "employee", "machine").write.mode("overwrite").partitionBy(
    "shift"
).parquet("out/branches/shifts_tartu")
""",
    # 13
    """
import os

sorted(f for f in os.listdir("out/branches/shifts_tartu") if f.startswith("shift="))
""",
]
UNORDERED: set[int] = set()
