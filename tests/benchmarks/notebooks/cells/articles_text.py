"""Words of an encyclopaedia's articles, and how they link to each other."""

CELLS = [
    # 0
    r"""
import re

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StringType
from pyspark.sql.window import Window
""",
    # 1
    r"""
raw = spark.read.text("data/articles/articles.txt")
print(raw.count())
raw.show(3, truncate=80)
""",
    # 2
    r"""
parts = F.split("value", "\t")
articles = raw.select(parts[0].cast("int").alias("id"), parts[1].alias("title"), parts[2].alias("body"))
articles = articles.withColumn("year", F.regexp_extract("body", r"(\d{4})\.$", 1).cast("int")).withColumn(
    "chars", F.length("body")
)
articles.select(F.min("chars"), F.max("chars"), F.round(F.avg("chars"), 2), F.min("year"), F.max("year")).show()
""",
    # 3
    r"""
articles.groupBy((F.floor(F.col("year") / 50) * 50).alias("from_year")).count().orderBy("from_year").show()
""",
    # 4
    r"""
# clean and tokenise
clean = articles.withColumn("text", F.lower(F.regexp_replace("body", r"[^A-Za-z\s]", " "))).withColumn(
    "text", F.trim(F.regexp_replace("text", r"\s+", " "))
)
words = clean.select("id", F.explode(F.split("text", " ")).alias("word")).filter("word <> ''")
print("words:", words.count())
""",
    # 5
    r"""
words.groupBy("word").count().orderBy(F.desc("count"), "word").show(10)
""",
    # 6
    r"""
print("vocabulary:", words.select("word").distinct().count())
""",
    # 7
    r"""
stop = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "his",
    "but",
    "at",
    "are",
    "this",
]
content = words.filter(~F.col("word").isin(stop))
content.groupBy("word").count().orderBy(F.desc("count"), "word").show(15)
""",
    # 8
    r"""
# a very simple stemmer
def stem(word):
    return re.sub(r"(ing|ed|ly|ga|ti|zo)$", "", word) or word


stem_udf = F.udf(stem, StringType())
stems = content.withColumn("stem", stem_udf("word"))
stems.groupBy("stem").count().orderBy(F.desc("count"), "stem").show(10)
""",
    # 9
    r"""
print(stems.select("stem").distinct().count(), "stems")
""",
    # 10
    r"""
content.withColumn("len", F.length("word")).groupBy("len").count().orderBy("len").toPandas()
""",
    # 11
    r"""
# pairs of words
def pairs(text):
    w = text.split(" ")
    return [a + " " + b for a, b in zip(w, w[1:])]


pairs_udf = F.udf(pairs, ArrayType(StringType()))
bigrams = clean.select("id", F.explode(pairs_udf("text")).alias("pair"))
bigrams.groupBy("pair").count().filter("count > 50").orderBy(F.desc("count"), "pair").show(10)
""",
    # 12
    r"""
# tf-idf
n_docs = articles.count()
tf = content.groupBy("id", "word").agg(F.count("*").alias("tf"))
df = tf.groupBy("word").agg(F.count("*").alias("df"))
tfidf = tf.join(df, "word").withColumn("score", F.round(F.col("tf") * F.log(F.lit(n_docs) / F.col("df")), 4))
tfidf.count()
""",
    # 13
    r"""
w = Window.partitionBy("id").orderBy(F.desc("score"), "word")
top = tfidf.withColumn("rank", F.row_number().over(w)).filter("rank <= 3")
top.filter("id < 4").orderBy("id", "rank").show(12)
""",
    # 14
    r"""
top.groupBy("word").count().orderBy(F.desc("count"), "word").show(5)
""",
    # 15
    r"""
links = spark.read.csv("data/articles/links.csv", header=True, inferSchema=True)
print(links.count())
edges = links.filter("src <> dst").select("src", "dst").distinct()
print(edges.count())
""",
    # 16
    r"""
out_deg = edges.groupBy("src").agg(F.count("*").alias("out"))
in_deg = edges.groupBy("dst").agg(F.count("*").alias("in"))
in_deg.groupBy("in").count().orderBy(F.desc("in")).show(5)
""",
    # 17
    r"""
named = in_deg.join(articles.select(F.col("id").alias("dst"), "title"), "dst").orderBy(F.desc("in"), "dst")
named.limit(10).toPandas()
""",
    # 18
    r"""
# links that are returned
mutual = (
    edges.alias("a")
    .join(edges.alias("b"), (F.col("a.src") == F.col("b.dst")) & (F.col("a.dst") == F.col("b.src")))
    .filter("a.src < a.dst")
)
print("mutual:", mutual.count())
""",
    # 19
    r"""
# two rounds of page rank
ranks = out_deg.select(F.col("src").alias("id"), F.lit(1.0).alias("rank"))
for i in range(2):
    contrib = (
        edges.join(ranks, edges.src == ranks.id)
        .join(out_deg, "src")
        .select("dst", (F.col("rank") / F.col("out")).alias("c"))
    )
    ranks = contrib.groupBy(F.col("dst").alias("id")).agg((0.15 + 0.85 * F.sum("c")).alias("rank"))
ranks.select("id", F.round("rank", 4).alias("rank")).orderBy(F.desc("rank"), "id").show(5)
""",
    # 20
    r"""
top.write.mode("overwrite").json("out/articles/keywords")
spark.read.json("out/articles/keywords").groupBy("rank").count().orderBy("rank").show()
""",
]
# 1: first rows of a frame with no order
UNORDERED = {1}
EXPERT = {
    4: ('print("words:", words.count())', 'words.cache()\nprint("words:", words.count())'),
}
