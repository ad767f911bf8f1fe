"""Which customers leave: features of three tables, written and read back, and two models."""

CELLS = [
    # 0
    """
import pandas as pd
from pyspark.ml import Pipeline
from pyspark.ml.classification import LogisticRegression, RandomForestClassifier
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import OneHotEncoder, StandardScaler, StringIndexer, VectorAssembler
from pyspark.sql import functions as F
""",
    # 1
    """
customers = spark.read.csv("data/telecom/customers.csv", header=True, inferSchema=True)
usage = spark.read.csv("data/telecom/usage.csv", header=True, inferSchema=True)
calls = spark.read.json("data/telecom/support_calls.json")
customers.printSchema()
print(customers.count(), usage.count(), calls.count())
""",
    # 2
    """
customers.show(5, vertical=True)
""",
    # 3
    """
customers.groupBy("Churn").count().orderBy("Churn").show()
customers.groupBy("Contract").pivot("Churn").count().orderBy("Contract").show()
""",
    # 4
    """
for c in ["gender", "Partner", "InternetService", "PaymentMethod"]:
    customers.groupBy(c).agg(
        F.count("*").alias("n"), F.round(F.avg((F.col("Churn") == "Yes").cast("int")), 4).alias("churn")
    ).orderBy(c).show()
""",
    # 5
    """
customers.select("tenure", "MonthlyCharges").describe().toPandas()
""",
    # 6
    """
# TotalCharges has blanks for new customers
customers = customers.withColumn("TotalCharges", F.expr("try_cast(trim(TotalCharges) as double)"))
print("missing:", customers.filter(F.col("TotalCharges").isNull()).count())
customers = customers.fillna({"TotalCharges": 0.0}).withColumn("label", (F.col("Churn") == "Yes").cast("double"))
""",
    # 7
    """
use = usage.groupBy("customerID").agg(
    F.round(F.avg("minutes"), 4).alias("avg_minutes"),
    F.sum("sms").alias("sms"),
    F.max("data_mb").alias("max_mb"),
    F.sum("dropped_calls").alias("dropped"),
    F.count(F.when(F.col("minutes") < 60, 1)).alias("quiet_months"),
)
use.describe("avg_minutes", "dropped", "quiet_months").show()
""",
    # 8
    """
last = usage.filter("month >= '2024-07'").groupBy("customerID").agg(F.sum("minutes").alias("recent"))
trend = use.join(last, "customerID").withColumn("trend", F.round(F.col("recent") / 3 / (F.col("avg_minutes") + 1), 4))
trend.filter("trend < 0.5").count()
""",
    # 9
    """
support = calls.groupBy("customerID").agg(
    F.count("*").alias("calls"),
    F.sum("minutes").alias("call_minutes"),
    F.sum((~F.col("solved")).cast("int")).alias("unsolved"),
)
support.orderBy(F.desc("unsolved"), F.desc("calls"), "customerID").show(5)
""",
    # 10
    """
features = (
    customers.join(trend, "customerID", "left")
    .join(support, "customerID", "left")
    .fillna(0, ["calls", "call_minutes", "unsolved", "sms", "dropped", "quiet_months"])
    .fillna(0.0, ["avg_minutes", "max_mb", "trend"])
)
features.count()
""",
    # 11
    """
features.groupBy("label").agg(
    *[
        F.round(F.avg(c), 3).alias(c)
        for c in ["tenure", "MonthlyCharges", "avg_minutes", "dropped", "calls", "unsolved", "trend"]
    ]
).orderBy("label").toPandas().T
""",
    # 12
    """
features.write.mode("overwrite").parquet("out/telecom/features")
""",
    # 13
    """
data = spark.read.parquet("out/telecom/features")
# a split that stays the same
data = data.withColumn("bucket", F.abs(F.hash("customerID")) % 10)
train, test = data.filter("bucket < 8"), data.filter("bucket >= 8")
print(train.count(), test.count())
""",
    # 14
    """
cat = ["gender", "Partner", "InternetService", "Contract", "PaymentMethod"]
num = [
    "SeniorCitizen",
    "tenure",
    "MonthlyCharges",
    "TotalCharges",
    "avg_minutes",
    "dropped",
    "quiet_months",
    "calls",
    "unsolved",
    "trend",
]
stages = [
    StringIndexer(inputCols=cat, outputCols=[c + "_i" for c in cat]),
    OneHotEncoder(inputCols=[c + "_i" for c in cat], outputCols=[c + "_v" for c in cat]),
    VectorAssembler(inputCols=[c + "_v" for c in cat] + num, outputCol="raw"),
    StandardScaler(inputCol="raw", outputCol="features"),
]
prep = Pipeline(stages=stages).fit(train)
train_f, test_f = prep.transform(train), prep.transform(test)
train_f.select("features").first()[0].size
""",
    # 15
    """
lr = LogisticRegression(maxIter=15, regParam=0.01).fit(train_f)
evaluator = BinaryClassificationEvaluator()
print(round(evaluator.evaluate(lr.transform(test_f)), 3))
""",
    # 16
    """
pred = lr.transform(test_f)
pred.groupBy("label", "prediction").count().orderBy("label", "prediction").show()
""",
    # 17
    """
tp = pred.filter("label = 1 and prediction = 1").count()
fp = pred.filter("label = 0 and prediction = 1").count()
fn = pred.filter("label = 1 and prediction = 0").count()
print(f"precision {tp / (tp + fp):.2f} recall {tp / (tp + fn):.2f}")
""",
    # 18
    """
rf = RandomForestClassifier(numTrees=8, maxDepth=5, seed=42).fit(train_f)
print(evaluator.evaluate(rf.transform(test_f)))
""",
    # 19
    """
pd.Series(rf.featureImportances.toArray()).sort_values(ascending=False).head(5)
""",
    # 20
    """
from pyspark.ml.functions import vector_to_array

scored = pred.withColumn("p", F.round(vector_to_array("probability")[1], 2)).select(
    "customerID", "Contract", "MonthlyCharges", "p"
)
scored.groupBy("Contract").agg(F.round(F.avg("p"), 2).alias("risk"), F.count("*").alias("n")).orderBy(
    "Contract"
).show()
""",
    # 21
    """
scored.filter("p > 0.5").write.mode("overwrite").csv("out/telecom/at_risk", header=True)
""",
]
# 2: first rows of a frame with no order; 5, 7: every digit of a mean or stddev; 18, 19: samples of rows by partition
UNORDERED = {2, 5, 7, 18, 19}
EXPERT = {
    1: ("customers.printSchema()", "customers.cache()\nusage.cache()\ncustomers.printSchema()"),
}
