"""Models are saved and loaded immediately, as one line of the user's."""

from __future__ import annotations

from typing import Any

SAVE = """
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import StringIndexer
letters = spark.createDataFrame([("a",), ("b",)], ["letter"])
model = Pipeline(stages=[StringIndexer(inputCol="letter", outputCol="number")]).fit(letters)
letters.write.parquet(at("letters"))
model.save(at("model"))
model.write().overwrite().save(at("model"))
stages = PipelineModel.load(at("model")).stages
"""


def test_saving_a_pipeline_defers_none_of_its_files(cell: Any) -> None:
    program = cell.capture(SAVE)
    assert len(cell.namespace["stages"]) == 1
    assert [write.name for write in program.writes] == ["letters"]
    assert cell.made() == {"model"}


def test_saving_over_what_is_pending_settles_it(cell: Any) -> None:
    source = SAVE.replace('at("model")', 'at("letters/model")')
    program = cell.capture(source, deploying=True)
    assert cell.deployed == ["letters"]
    assert program.writes == ()
    assert "model" in cell.made("letters")


def test_statistics_of_vectors_leave_other_writes_pending(cell: Any) -> None:
    program = cell.capture("""\
        from pyspark.mllib.stat import Statistics
        spark.range(2).write.parquet(at("out"))
        mean = Statistics.colStats(spark.sparkContext.parallelize([[1.0, 2.0], [3.0, 4.0]])).mean().tolist()
        """)
    assert cell.namespace["mean"] == [2.0, 3.0]
    assert (len(program.writes), program.settlements) == (1, ())
