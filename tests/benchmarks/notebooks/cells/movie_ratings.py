"""Films, ratings and tags: what is liked, and recommendations by matrix factorisation."""

CELLS = [
    # 0
    r"""
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.recommendation import ALS
from pyspark.sql import functions as F
from pyspark.sql.window import Window
""",
    # 1
    r"""
ratings_df = spark.read.load("data/movies/ratings.csv", format="csv", header=True, inferSchema=True)
movies_df = spark.read.load("data/movies/movies.csv", format="csv", header=True, inferSchema=True)
tags_df = spark.read.load("data/movies/tags.csv", format="csv", header=True, inferSchema=True)
""",
    # 2
    r"""
movies_df.show(5, truncate=False)
ratings_df.show(5)
tags_df.show(5)
""",
    # 3
    r"""
print("ratings", ratings_df.count())
print("users", ratings_df.select("userId").distinct().count())
print("rated films", ratings_df.select("movieId").distinct().count(), "of", movies_df.count())
""",
    # 4
    r"""
tmp1 = ratings_df.groupBy("userID").count().toPandas()["count"].min()
tmp2 = ratings_df.groupBy("movieId").count().toPandas()["count"].min()
print(f"For the users that rated movies, the minimum number of ratings is {tmp1}; per movie it is {tmp2}")
""",
    # 5
    r"""
tmp1 = sum(ratings_df.groupBy("movieId").count().toPandas()["count"] == 1)
tmp2 = ratings_df.select("movieId").distinct().count()
print(f"{tmp1} out of {tmp2} movies are rated by only one user")
""",
    # 6
    r"""
ratings_df.groupBy("rating").count().orderBy("rating").show()
""",
    # 7
    r"""
users, films, n = (
    ratings_df.select("userId").distinct().count(),
    ratings_df.select("movieId").distinct().count(),
    ratings_df.count(),
)
print(f"sparsity {100 * (1 - n / (users * films)):.2f} %")
""",
    # 8
    r"""
# films never rated
movies_df.join(ratings_df, "movieId", "left_anti").orderBy("movieId").show(5, truncate=False)
""",
    # 9
    r"""
rated = ratings_df.join(movies_df, "movieId")
avg_ratings = rated.groupBy("movieId", "title").agg(
    F.count("rating").alias("n"), F.round(F.avg("rating"), 4).alias("avg")
)
avg_ratings.filter("n >= 100").orderBy(F.desc("avg"), "movieId").show(10, truncate=False)
""",
    # 10
    r"""
avg_ratings.orderBy(F.desc("n"), "movieId").show(10, truncate=False)
""",
    # 11
    r"""
genres = rated.withColumn("genre", F.explode(F.split("genres", r"\|")))
genres.groupBy("genre").agg(F.count("*").alias("n"), F.round(F.avg("rating"), 3).alias("avg")).orderBy(
    F.desc("n"), "genre"
).show()
""",
    # 12
    r"""
# does taste change with the decade of the film?
decades = genres.withColumn(
    "decade", (F.regexp_extract("title", r"\((\d{4})\)", 1).cast("int") / 10).cast("int") * 10
)
decades.groupBy("genre").pivot("decade").agg(F.round(F.avg("rating"), 2)).orderBy("genre").toPandas()
""",
    # 13
    r"""
w = Window.partitionBy("genre").orderBy(F.desc("avg"), "movieId")
best = (
    genres.groupBy("genre", "movieId", "title")
    .agg(F.count("*").alias("n"), F.round(F.avg("rating"), 4).alias("avg"))
    .filter("n >= 50")
    .withColumn("rank", F.row_number().over(w))
    .filter("rank <= 2")
)
best.orderBy("genre", "rank").show(20, truncate=False)
""",
    # 14
    r"""
tags_df.withColumn("tag", F.lower(F.trim("tag"))).groupBy("tag").count().orderBy(F.desc("count"), "tag").show()
""",
    # 15
    r"""
by_year = (
    ratings_df.withColumn("year", F.year(F.from_unixtime("timestamp")))
    .groupBy("year")
    .agg(F.count("*").alias("n"), F.countDistinct("userId").alias("users"))
    .orderBy("year")
)
by_year.toPandas()
""",
    # 16
    r"""
movie_ratings = ratings_df.drop("timestamp").withColumn("rating", F.col("rating").cast("float"))
(training, validation) = movie_ratings.randomSplit([0.8, 0.2], seed=7)
print(training.count() + validation.count())
""",
    # 17
    r"""
evaluator = RegressionEvaluator(metricName="rmse", labelCol="rating", predictionCol="prediction")
best_error, best_model = float("inf"), None
for rank in (3, 6):
    model = ALS(
        maxIter=3,
        rank=rank,
        regParam=0.1,
        userCol="userId",
        itemCol="movieId",
        ratingCol="rating",
        coldStartStrategy="drop",
        seed=1,
    ).fit(training)
    rmse = evaluator.evaluate(model.transform(validation))
    print(rank, rmse)
    if rmse < best_error:
        best_error, best_model = rmse, model
""",
    # 18
    r"""
predictions = best_model.transform(validation)
predictions.orderBy("userId", "movieId").show(5)
print(round(evaluator.evaluate(predictions), 1))
""",
    # 19
    r"""
few = ratings_df.select("userId").distinct().orderBy("userId").limit(3)
recs = best_model.recommendForUserSubset(few, 3)
recs.withColumn("r", F.explode("recommendations")).join(movies_df, F.col("r.movieId") == movies_df.movieId).select(
    "userId", "title", "r.rating"
).orderBy("userId", F.desc("rating")).show(truncate=False)
""",
    # 20
    r"""
avg_ratings.write.mode("overwrite").parquet("out/movies/averages")
spark.read.parquet("out/movies/averages").filter("n >= 100 and avg > 3.8").count()
""",
]
# 2: first rows of a frame with no order; 17, 18, 19: a random split by partition, and what is trained of it
UNORDERED = {2, 17, 18, 19}
EXPERT = {
    1: ("tags_df = ", "ratings_df.cache()\ntags_df = "),
}
