"""Events of a shop's visitors: sessions, a funnel, a test of two variants."""

CELLS = [
    # 0
    """
import math

import pandas as pd
from pyspark.sql import Window
from pyspark.sql import functions as F
""",
    # 1
    """
events = spark.read.json("data/clicks/events")
events.printSchema()
""",
    # 2
    """
events.count()
""",
    # 3
    """
events.show(3, truncate=False)
""",
    # 4
    """
flat = events.select(
    "event_id",
    F.to_timestamp("ts").alias("ts"),
    F.col("user.id").alias("user_id"),
    F.col("user.device").alias("device"),
    F.col("user.browser").alias("browser"),
    "type",
    "page",
    F.coalesce("campaign.source", F.lit("direct")).alias("source"),
    "items",
)
flat.groupBy("type").count().orderBy(F.desc("count")).show()
""",
    # 5
    """
flat.createOrReplaceTempView("flat")
spark.read.csv("data/clicks/users.csv", header=True, inferSchema=True).createOrReplaceTempView("users")
spark.sql(
    "select device, browser, count(*) n, count(distinct user_id) users from flat group by 1, 2 order by 1, 2"
).show()
""",
    # 6
    '''
spark.sql("""
    select date(ts) day, count(*) events, count(distinct user_id) users, sum(if(type = 'purchase', 1, 0)) purchases
    from flat group by date(ts) order by day
""").toPandas()
''',
    # 7
    """
# a session ends after 30 minutes of silence
w = Window.partitionBy("user_id").orderBy("ts", "event_id")
marked = (
    flat.withColumn("gap", F.col("ts").cast("long") - F.lag("ts").over(w).cast("long"))
    .withColumn("new", F.when(F.col("gap").isNull() | (F.col("gap") > 1800), 1).otherwise(0))
    .withColumn("session_no", F.sum("new").over(w))
    .withColumn("session_id", F.concat_ws("-", "user_id", "session_no"))
)
marked.createOrReplaceTempView("marked")
marked.select("session_id").distinct().count()
""",
    # 8
    """
sessions = marked.groupBy("session_id", "user_id").agg(
    F.min("ts").alias("begun"),
    F.count("*").alias("events"),
    (F.max("ts").cast("long") - F.min("ts").cast("long")).alias("seconds"),
    F.max((F.col("type") == "purchase").cast("int")).alias("bought"),
    F.first("source").alias("any_source"),
)
sessions.select(
    F.count("*").alias("n"),
    F.round(F.avg("events"), 3).alias("events"),
    F.round(F.avg("seconds"), 1).alias("seconds"),
    F.sum("bought").alias("bought"),
).show()
""",
    # 9
    """
sessions.groupBy(F.hour("begun").alias("hour")).agg(
    F.count("*").alias("n"), F.round(F.avg("bought"), 4).alias("rate")
).orderBy("hour").toPandas()
""",
    # 10
    """
sessions.groupBy("events").count().orderBy("events").show(10)
""",
    # 11
    '''
# funnel: how many sessions reach each step
funnel = spark.sql("""
    select count(distinct session_id) sessions,
           count(distinct case when type = 'product_view' then session_id end) viewed,
           count(distinct case when type = 'add_to_cart' then session_id end) carts,
           count(distinct case when type = 'checkout' then session_id end) checkouts,
           count(distinct case when type = 'purchase' then session_id end) bought
    from marked
""").toPandas()
funnel.T
''',
    # 12
    '''
spark.sql("""
    select source, count(distinct session_id) sessions,
           round(count(distinct if(type = 'purchase', session_id, null)) / count(distinct session_id), 4) rate
    from marked group by source order by source
""").show()
''',
    # 13
    """
# what comes after what
nxt = marked.withColumn("next", F.lead("type").over(Window.partitionBy("session_id").orderBy("ts", "event_id")))
nxt.filter("next is not null").groupBy("type").pivot("next").count().orderBy("type").show()
""",
    # 14
    """
lines = (
    flat.filter("items is not null")
    .select("event_id", "user_id", "type", F.explode("items").alias("item"))
    .select("*", "item.*")
    .drop("item")
)
lines.createOrReplaceTempView("lines")
spark.sql(
    "select sku, sum(qty) qty, round(sum(price * qty), 2) revenue from lines where type = 'purchase' group by sku "
    "order by revenue desc, sku limit 10"
).show()
""",
    # 15
    '''
spark.sql("""
    select u.country, count(distinct l.user_id) buyers, round(sum(l.price * l.qty), 2) revenue
    from lines l join users u on l.user_id = u.user_id where l.type = 'purchase' group by u.country order by u.country
""").show()
''',
    # 16
    '''
ab = spark.sql("""
    select u.group, count(*) users, sum(bought) buyers, round(sum(bought) / count(*), 4) rate
    from (select user_id, max(if(type = 'purchase', 1, 0)) bought from flat group by user_id) b
    join users u on b.user_id = u.user_id group by u.group order by u.group
""").toPandas()
ab
''',
    # 17
    """
p = ab.buyers.sum() / ab.users.sum()
z = (ab.rate[1] - ab.rate[0]) / math.sqrt(p * (1 - p) * (1 / ab.users[0] + 1 / ab.users[1]))
print(f"z = {z:.2f}, p = {math.erfc(abs(z) / math.sqrt(2)):.4f}")
""",
    # 18
    """
# is it so on every device?
(
    flat.join(spark.table("users"), "user_id")
    .groupBy("device", "group")
    .agg(
        F.countDistinct("user_id").alias("users"),
        F.countDistinct(F.when(F.col("type") == "purchase", F.col("user_id"))).alias("buyers"),
    )
    .withColumn("rate", F.round(F.col("buyers") / F.col("users"), 4))
    .orderBy("device", "group")
    .show()
)
""",
    # 19
    """
sessions.drop("any_source").write.mode("overwrite").parquet("out/clicks/sessions")
""",
    # 20
    """
s = spark.read.parquet("out/clicks/sessions")
s.groupBy("bought").agg(F.count("*").alias("n"), F.max("seconds").alias("longest")).orderBy("bought").show()
""",
]
# 3: first rows of a frame with no order
UNORDERED = {3}
EXPERT = {
    4: ('flat.groupBy("type")', 'flat.cache()\nflat.groupBy("type")'),
}
