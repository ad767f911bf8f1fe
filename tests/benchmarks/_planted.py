"""Jobs with one fault each, and each one's twin without it: cells of PySpark that a run of `findings` executes.

The line with the fault ends with ``# fault``. A twin does the same work, or as nearly as it can, without the fault.
Written from the names of the rules alone, before any threshold was chosen; but the job that collects garbage was made
heavier later, as Spark held what it had allocated without a collection. Cells find `spark`, `F`, `Window`, `data`
(see `lay_out`) and `out`, a folder that does not exist yet.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 2_000_000
"""Of most inputs; `hot` has 97 of 100 in one key."""


@dataclass(frozen=True)
class Planted:
    """A job with a fault."""

    name: str
    rules: tuple[str, ...]
    """The rules that name the fault: finding one of them is finding it."""
    faulty: str
    healthy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of `compile` with the fault."""
    healthy_options: Mapping[str, Any] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    """The session's settings with the fault."""
    runs: int = 1
    """How many times it runs; the last one is looked at."""
    later: str = ""
    """What a later cell does; it is looked at after that."""


def lay_out(spark: SparkSession, folder: Path) -> None:
    """Write what the jobs read."""
    from pyspark.sql import functions as F

    text = F.sha2(F.col("id").cast("string"), 256)
    hot = F.when(F.col("id") % 100 < 97, F.lit(7)).otherwise(F.col("id") % 1000)
    rows = spark.range(0, ROWS, 1, 8).select(
        "id", (F.col("id") % 1000).alias("key"), hot.alias("hot"), text.alias("text")
    )
    rows.write.parquet(str(folder / "rows"))
    rows.write.parquet(str(folder / "others"))
    rows.where("id < 400000").repartition(400).write.parquet(str(folder / "many"))
    rows.where("id < 400000").coalesce(4).write.parquet(str(folder / "few"))
    moment = F.timestamp_seconds(F.lit(1_700_000_000) + F.col("id") % (20 * 86_400))
    dated = rows.where("id < 1600000").withColumn("at", moment).withColumn("day", F.to_date("at"))
    dated.repartition(8, "day").write.partitionBy("day").parquet(str(folder / "days"))
    keys = spark.range(0, 1000, 1, 1).select(F.col("id").alias("key"), F.concat(F.lit("k"), "id").alias("name"))
    keys.write.parquet(str(folder / "keys"))
    keys.crossJoin(spark.range(6).select(F.col("id").alias("copy"))).write.parquet(str(folder / "repeated_keys"))
    lines = rows.select("id", "key", "text").coalesce(1)
    lines.write.csv(str(folder / "one_csv"), header=True)
    (plain,) = (folder / "one_csv").glob("*.csv")
    (folder / "zipped").mkdir()
    with plain.open("rb") as source, gzip.open(folder / "zipped" / "lines.csv.gz", "wb", compresslevel=1) as target:
        shutil.copyfileobj(source, target)


_SLOW_PARTITION = """
import time
from pyspark import TaskContext
def work(batches):
    for batch in batches:
        yield batch
    time.sleep({last} if TaskContext.get().partitionId() == 5 else {other})
rows = spark.range(0, 800000, 1, 6)
slow = rows.mapInPandas(work, "id long"){mark}
slow.write.parquet(out)
"""

_FAILS_ONCE = """
import os, time
def work(batches):
    for batch in batches:
        yield batch
    time.sleep(0.7)
    if {fails} and not os.path.exists(out + "-failed"):
        open(out + "-failed", "w").close()
        raise OSError("the disk is gone for a moment")
rows = spark.range(0, 40000, 1, 2)
fragile = rows.mapInPandas(work, "id long"){mark}
fragile.write.parquet(out)
"""

_ALONE = """
work = F.sha2(F.sha2(F.sha2(F.sha2(F.col("id").cast("string"), 512), 512), 512), 512)
one = spark.range(0, 600000, 1, 1).select(work.alias("a")).agg(F.max("a"))
two = spark.range(0, 600001, 1, 1).select(work.alias("b")).agg(F.max("b"))
one.write.parquet(out + "/one")
two.write.parquet(out + "/two"){mark}
"""

PLANTED = (
    Planted(
        "skewed window",
        ("skewed-partition",),
        """
rows = spark.read.parquet(f"{data}/rows")
order = Window.partitionBy("hot").orderBy("text")
ranked = rows.withColumn("rank", F.row_number().over(order))  # fault
ranked.write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows")
order = Window.partitionBy("key").orderBy("text")
ranked = rows.withColumn("rank", F.row_number().over(order))
ranked.write.parquet(out)
""",
        {"parallelism": 8},
        {"parallelism": 8},
    ),
    Planted(
        "skewed join",
        ("skewed-partition",),
        """
rows = spark.read.parquet(f"{data}/rows").select(F.when(F.col("id") % 100 < 97, 7).otherwise(F.col("id")).alias("id"))
texts = spark.read.parquet(f"{data}/others").select("id", "text")
joined = rows.join(texts, "id")  # fault
joined.write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows").select((F.col("id") * 3 % 2000000).alias("id"))
texts = spark.read.parquet(f"{data}/others").select("id", "text")
joined = rows.join(texts, "id")
joined.write.parquet(out)
""",
        {"parallelism": 8},
        {"parallelism": 8},
    ),
    Planted(
        "one slow task",
        ("straggling-task",),
        _SLOW_PARTITION.format(last=3, other=0.3, mark="  # fault"),
        _SLOW_PARTITION.format(last=0.3, other=0.3, mark=""),
    ),
    Planted(
        "spilling window",
        ("spill",),
        """
rows = spark.read.parquet(f"{data}/rows")
order = Window.partitionBy(F.col("key") % 8).orderBy("id").rowsBetween(-5, 5)
sums = rows.withColumn("near", F.sum("id").over(order))  # fault
sums.write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows")
order = Window.partitionBy(F.col("key") % 8).orderBy("id").rowsBetween(-5, 5)
sums = rows.withColumn("near", F.sum("id").over(order))
sums.write.parquet(out)
""",
        conf={
            "spark.sql.windowExec.buffer.in.memory.threshold": "20000",
            "spark.sql.windowExec.buffer.spill.threshold": "20000",
        },
    ),
    Planted(
        "tiny tasks",
        ("tiny-tasks",),
        """
numbers = spark.range(0, 2000000, 1, 1500)  # fault
numbers.where("id % 3 = 0").agg(F.sum("id").alias("total")).write.parquet(out)
""",
        """
numbers = spark.range(0, 2000000, 1, 4)
numbers.where("id % 3 = 0").agg(F.sum("id").alias("total")).write.parquet(out)
""",
    ),
    Planted(
        "one input partition",
        ("too-few-tasks",),
        """
numbers = spark.range(0, 1500000, 1, 1)  # fault
hashed = numbers.select(F.sha2(F.sha2(F.col("id").cast("string"), 512), 512).alias("h"))
hashed.write.parquet(out)
""",
        """
numbers = spark.range(0, 1500000, 1, 4)
hashed = numbers.select(F.sha2(F.sha2(F.col("id").cast("string"), 512), 512).alias("h"))
hashed.write.parquet(out)
""",
    ),
    Planted(
        "a slot for itself",
        ("idle-slots",),
        _ALONE.format(mark="  # fault"),
        _ALONE.format(mark=""),
        {"slots": 1},
    ),
    Planted(
        "window without partitions",
        ("one-partition",),
        """
rows = spark.read.parquet(f"{data}/rows")
order = Window.orderBy("id")
numbered = rows.withColumn("number", F.row_number().over(order))  # fault
numbered.write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows")
order = Window.partitionBy("key").orderBy("id")
numbered = rows.withColumn("number", F.row_number().over(order))
numbered.write.parquet(out)
""",
    ),
    Planted(
        "coalesced to one",
        ("one-partition",),
        """
rows = spark.read.parquet(f"{data}/rows")
hashed = rows.select(F.sha2(F.sha2("text", 512), 512).alias("h")).where("h < '8'")
hashed.coalesce(1).write.parquet(out)  # fault
""",
        """
rows = spark.read.parquet(f"{data}/rows")
hashed = rows.select(F.sha2(F.sha2("text", 512), 512).alias("h")).where("h < '8'")
hashed.write.parquet(out)
""",
    ),
    Planted(
        "small side shuffled",
        ("small-side-shuffled",),
        """
rows = spark.read.parquet(f"{data}/rows")
others = spark.read.parquet(f"{data}/others").where("text like 'ab%' and id % 7 = 0")
wanted = others.select(F.col("id").alias("other"), F.col("key").alias("of"))
found = rows.join(wanted, rows.id == wanted.other)  # fault
found.write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows")
others = spark.read.parquet(f"{data}/others").where("text like 'ab%' and id % 7 = 0")
wanted = others.select(F.col("id").alias("other"), F.col("key").alias("of"))
found = rows.join(F.broadcast(wanted), rows.id == wanted.other)
found.write.parquet(out)
""",
    ),
    Planted(
        "large broadcast",
        ("large-broadcast",),
        """
few = spark.read.parquet(f"{data}/rows").where("text like 'ab%'").select("id", "key")
texts = spark.read.parquet(f"{data}/others").select(F.col("id").alias("other"), "text")
found = few.join(F.broadcast(texts), F.col("id") == F.col("other"))  # fault
found.write.parquet(out)
""",
        """
few = spark.read.parquet(f"{data}/rows").where("text like 'ab%'").select("id", "key")
texts = spark.read.parquet(f"{data}/others").select(F.col("id").alias("other"), "text")
found = F.broadcast(few).join(texts, F.col("id") == F.col("other"))
found.write.parquet(out)
""",
    ),
    Planted(
        "join that multiplies",
        ("multiplying-join",),
        """
rows = spark.read.parquet(f"{data}/rows").select("id", "key")
keys = spark.read.parquet(f"{data}/repeated_keys").select("key", "name")
named = rows.join(keys, "key")  # fault
named.groupBy("name").agg(F.max(F.sha1(F.col("id").cast("string"))).alias("most")).write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows").select("id", "key")
keys = spark.read.parquet(f"{data}/keys").select("key", "name")
named = rows.join(keys, "key")
named.groupBy("name").agg(F.max(F.sha1(F.col("id").cast("string"))).alias("most")).write.parquet(out)
""",
    ),
    Planted(
        "cross join",
        ("cross-join",),
        """
left = spark.read.parquet(f"{data}/rows").select("id", "key").where("id < 40000")
keys = spark.read.parquet(f"{data}/keys").withColumnRenamed("key", "other")
both = left.crossJoin(keys).where("key * 3 = other * 3 + id - id")  # fault
both.write.parquet(out)
""",
        """
left = spark.read.parquet(f"{data}/rows").select("id", "key").where("id < 40000")
keys = spark.read.parquet(f"{data}/keys").withColumnRenamed("key", "other")
both = left.join(keys, F.col("key") == F.col("other"))
both.write.parquet(out)
""",
    ),
    Planted(
        "join on a range",
        ("cross-join",),
        """
left = spark.read.parquet(f"{data}/rows").select("id", "key").where("id < 100000")
keys = spark.read.parquet(f"{data}/keys").withColumnRenamed("key", "other")
near = left.join(keys, (F.col("other") > F.col("key") - 1) & (F.col("other") < F.col("key") + 1))  # fault
near.write.parquet(out)
""",
        """
left = spark.read.parquet(f"{data}/rows").select("id", "key").where("id < 100000")
keys = spark.read.parquet(f"{data}/keys").withColumnRenamed("key", "other")
near = left.join(keys, F.col("other") == F.col("key"))
near.write.parquet(out)
""",
    ),
    Planted(
        "Python function",
        ("python-functions",),
        """
rows = spark.read.parquet(f"{data}/rows").where("id < 600000")
shout = F.udf(lambda text: text.upper()[:12], "string")
loud = rows.withColumn("loud", shout("text"))  # fault
loud.write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows").where("id < 600000")
loud = rows.withColumn("loud", F.substring(F.upper("text"), 1, 12))
loud.write.parquet(out)
""",
    ),
    Planted(
        "file parsed twice",
        ("input-read-again",),
        """
lines = spark.read.csv(f"{data}/one_csv", header=True, schema="id long, key long, text string")
lines.groupBy("key").count().write.parquet(out + "/keys")
lines.where("text like 'a%'").groupBy("text").count().write.parquet(out + "/texts")  # fault
""",
        """
lines = spark.read.csv(f"{data}/one_csv", header=True, schema="id long, key long, text string")
lines.where("text like 'a%'").groupBy("text", "key").count().write.parquet(out + "/texts")
""",
    ),
    Planted(
        "many small files read",
        ("small-files-read",),
        """
rows = spark.read.parquet(f"{data}/many")  # fault
rows.groupBy("key").agg(F.max("text").alias("most")).write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/few")
rows.groupBy("key").agg(F.max("text").alias("most")).write.parquet(out)
""",
    ),
    Planted(
        "many small files written",
        ("small-files-written",),
        """
rows = spark.read.parquet(f"{data}/few").withColumn("bucket", F.col("key") % 100)
rows.repartition(8).write.partitionBy("bucket").parquet(out)  # fault
""",
        """
rows = spark.read.parquet(f"{data}/few").withColumn("bucket", F.col("key") % 100)
rows.repartition(8).write.parquet(out)
""",
    ),
    Planted(
        "garbage",
        ("garbage-collection",),
        """
numbers = spark.range(0, 5000000, 1, 4)
words = numbers.select((F.col("id") % 4).alias("k"), F.sha1(F.col("id").cast("string")).alias("w"))
lists = words.groupBy("k").agg(F.collect_list("w").alias("all"))  # fault
lists.select("k", F.size("all").alias("n")).write.parquet(out)
""",
        """
numbers = spark.range(0, 5000000, 1, 4)
words = numbers.select((F.col("id") % 4).alias("k"), F.sha1(F.col("id").cast("string")).alias("w"))
counts = words.groupBy("k").agg(F.count("w").alias("n"))
counts.write.parquet(out)
""",
    ),
    Planted(
        "task that fails once",
        ("failed-tasks",),
        _FAILS_ONCE.format(fails=True, mark="  # fault"),
        _FAILS_ONCE.format(fails=False, mark=""),
        {"restart": "fixed-delay:3:10ms"},
    ),
    Planted(
        "too many shuffle partitions",
        ("shuffle-partitions",),
        """
rows = spark.read.parquet(f"{data}/few")
spread = rows.repartition(1200, "key")  # fault
spread.groupBy("key").count().write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/few")
spread = rows.repartition(4, "key")
spread.groupBy("key").count().write.parquet(out)
""",
    ),
    Planted(
        "compressed file",
        ("unsplittable-files",),
        """
lines = spark.read.csv(f"{data}/zipped", header=True, schema="id long, key long, text string")  # fault
lines.groupBy("key").agg(F.max("text").alias("most")).write.parquet(out)
""",
        """
lines = spark.read.csv(f"{data}/one_csv", header=True, schema="id long, key long, text string")
lines.groupBy("key").agg(F.max("text").alias("most")).write.parquet(out)
""",
    ),
    Planted(
        "order that a window undoes",
        ("needless-sort",),
        """
rows = spark.read.parquet(f"{data}/rows")
ordered = rows.orderBy("id")  # fault
newest = Window.partitionBy("key").orderBy(F.desc("id"))
ordered.withColumn("place", F.row_number().over(newest)).where("place < 4").write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows")
newest = Window.partitionBy("key").orderBy(F.desc("id"))
rows.withColumn("place", F.row_number().over(newest)).where("place < 4").orderBy("id").write.parquet(out)
""",
    ),
    Planted(
        "one day of all partitions",
        ("unfiltered-partitions",),
        """
days = spark.read.parquet(f"{data}/days")
noon = days.where(F.to_date("at") == F.to_date(F.lit("2023-11-20")))  # fault
noon.groupBy("text").agg(F.max("id").alias("last")).write.parquet(out)
""",
        """
days = spark.read.parquet(f"{data}/days")
noon = days.where(F.col("day") == F.to_date(F.lit("2023-11-20")))
noon.groupBy("text").agg(F.max("id").alias("last")).write.parquet(out)
""",
    ),
    Planted(
        "cache that one write reads",
        ("unread-cache",),
        """
rows = spark.read.parquet(f"{data}/rows").cache()  # fault
rows.groupBy("key").agg(F.max("text").alias("most")).write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows")
rows.groupBy("key").agg(F.max("text").alias("most")).write.parquet(out)
""",
        later="rows.unpersist(blocking=True)",
    ),
    Planted(
        "plan of hundreds of steps",
        ("driver-busy",),
        """
rows = spark.read.parquet(f"{data}/few").select("id", "key")
for key in range(500):
    rows = rows.where(F.col("key") != key)  # fault
rows.write.parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/few").select("id", "key")
rows = rows.where(~F.col("key").isin(list(range(500))))
rows.write.parquet(out)
""",
    ),
    Planted(
        "computed in every run",
        ("not-kept",),
        """
rows = spark.read.parquet(f"{data}/rows")
drawn = rows.where(F.rand() < 0.5)  # fault
drawn.groupBy("text").count().write.mode("overwrite").parquet(out)
""",
        """
rows = spark.read.parquet(f"{data}/rows")
drawn = rows.where(F.col("id") % 2 == 0)
drawn.groupBy("text").count().write.mode("overwrite").parquet(out)
""",
        runs=2,
    ),
    Planted(
        "generated rows in one task",
        ("one-partition", "too-few-tasks"),
        """
words = spark.createDataFrame([(number,) for number in range(2000)], "n long").coalesce(1)  # fault
long = words.select(F.explode(F.sequence(F.lit(1), F.lit(600))).alias("x"), "n")
long.select(F.sha2(F.sha2(F.concat_ws("-", "x", "n"), 512), 512).alias("h")).write.parquet(out)
""",
        """
words = spark.createDataFrame([(number,) for number in range(2000)], "n long").repartition(4)
long = words.select(F.explode(F.sequence(F.lit(1), F.lit(600))).alias("x"), "n")
long.select(F.sha2(F.sha2(F.concat_ws("-", "x", "n"), 512), 512).alias("h")).write.parquet(out)
""",
    ),
)
