"""Exploratory analysis of one wide CSV of loans."""

CELLS = [
    # 0
    """
import pandas as pd
import numpy as np
from pyspark.sql import functions as F

pd.set_option("display.max_columns", 50)
""",
    # 1
    """
df = spark.read.csv("data/loans/loans.csv", header=True, inferSchema=True)
df.printSchema()
""",
    # 2
    """
print(df.count(), len(df.columns))
""",
    # 3
    """
df.show(5)
""",
    # 4
    """
df.limit(5).toPandas().T
""",
    # 5
    """
df.select("loan_amnt", "int_rate", "annual_inc", "dti", "fico").describe().show()
""",
    # 6
    """
df = df.cache()
df.count()
""",
    # 7
    """
# nulls per column
nulls = df.select([F.count(F.when(F.col(c).isNull(), c)).alias(c) for c in df.columns]).toPandas().T
nulls.columns = ["n"]
nulls["pct"] = (nulls.n / df.count() * 100).round(2)
nulls[nulls.n > 0].sort_values("n", ascending=False)
""",
    # 8
    """
num_cols = [c for c, t in df.dtypes if t in ("int", "double", "bigint")]
cat_cols = [c for c, t in df.dtypes if t == "string"]
print(num_cols)
print(cat_cols)
""",
    # 9
    """
df.select("loan_amnt", "installment", "revol_bal", "revol_util").summary().show()
""",
    # 10
    """
# distinct values
for c in cat_cols:
    print(c, df.select(c).distinct().count())
""",
    # 11
    """
df.groupBy("loan_status").count().orderBy("count", ascending=False).show()
""",
    # 12
    """
df.crosstab("grade", "loan_status").orderBy("grade_loan_status").show()
""",
    # 13
    """
df = df.withColumn("bad", (F.col("loan_status") == "Charged Off").cast("int"))
df.groupBy("grade").agg(
    F.count("*").alias("n"),
    F.round(F.avg("bad"), 4).alias("default_rate"),
    F.round(F.avg("int_rate"), 3).alias("rate"),
).orderBy("grade").toPandas()
""",
    # 14
    """
df.approxQuantile(["annual_inc", "dti", "int_rate"], [0.01, 0.25, 0.5, 0.75, 0.99], 0.0)
""",
    # 15
    """
df.approxQuantile("revol_bal", [0.5, 0.9], 0.01)
""",
    # 16
    """
# histogram of the loan amount
bins = list(range(0, 42500, 2500))
hist = (
    df.withColumn("bin", (F.floor(F.col("loan_amnt") / 2500) * 2500).cast("int"))
    .groupBy("bin")
    .count()
    .orderBy("bin")
    .toPandas()
)
hist
""",
    # 17
    """
edges, counts = df.select("int_rate").rdd.flatMap(lambda r: r).histogram(20)
pd.DataFrame({"left": np.round(edges[:-1], 3), "n": counts})
""",
    # 18
    """
for c in ["int_rate", "dti", "fico", "revol_util", "annual_inc"]:
    print(c, round(df.fillna(0, [c]).stat.corr(c, "bad"), 5))
""",
    # 19
    """
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.stat import Correlation

cc = ["loan_amnt", "int_rate", "installment", "annual_inc", "dti", "fico", "revol_util"]
vec = VectorAssembler(inputCols=cc, outputCol="v", handleInvalid="skip").transform(df).select("v")
pd.DataFrame(Correlation.corr(vec, "v").head()[0].toArray(), index=cc, columns=cc).round(4)
""",
    # 20
    """
# outliers by IQR
q1, q3 = df.approxQuantile("annual_inc", [0.25, 0.75], 0.0)
hi = q3 + 3 * (q3 - q1)
print(hi, df.filter(F.col("annual_inc") > hi).count())
""",
    # 21
    """
clean = df.filter((F.col("annual_inc") <= hi) | F.col("annual_inc").isNull()).drop("desc", "mths_since_delinq")
clean = clean.withColumn("issue_year", F.year("issue_date")).withColumn(
    "inc_k", F.round(F.col("annual_inc") / 1000, 1)
)
clean.count()
""",
    # 22
    """
clean.groupBy("issue_year").pivot("grade").agg(F.round(F.avg("int_rate"), 2)).orderBy("issue_year").show()
""",
    # 23
    """
clean.groupBy("addr_state").agg(
    F.count("*").alias("n"), F.sum("loan_amnt").alias("amount"), F.round(F.avg("bad") * 100, 2).alias("bad_pct")
).orderBy(F.desc("bad_pct"), "addr_state").show(10)
""",
    # 24
    """
# small sample for the scatter plot
pdf = clean.sample(fraction=0.002, seed=7).select("loan_id", "fico", "int_rate", "grade").toPandas()
pdf.sort_values("loan_id").head()
""",
    # 25
    """
clean.groupBy("purpose", "term_months").agg(
    F.round(F.avg("loan_amnt"), 1).alias("avg_amnt"), F.expr("percentile(int_rate, 0.5)").alias("med_rate")
).orderBy("purpose", "term_months").show(30, truncate=False)
""",
    # 26
    """
df.unpersist()
clean.select("grade", "bad").groupBy("grade").agg(F.sum("bad").alias("bad"), F.count("bad").alias("n")).orderBy(
    "grade"
).show()
""",
]

# 3, 4: first rows of a frame with no order; 5, 9: every digit of a mean or stddev, approximate
# quartiles; 15: approximate quantile; 24: sample of rows
UNORDERED = {3, 4, 5, 9, 15, 24}
EXPERT = {
    1: ("df.printSchema()", "df.cache()\ndf.printSchema()"),
}
