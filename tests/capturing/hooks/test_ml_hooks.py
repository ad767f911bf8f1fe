"""Models are saved and loaded immediately, as one line of the user's."""

from __future__ import annotations

import sys
from typing import Any

import pytest

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


@pytest.fixture(params=["imported before", "imported by the cell"])
def packages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's packages for machine learning, once as they are in a process that has not imported them yet."""
    import pyspark.ml

    monkeypatch.setattr(pyspark, "ml", pyspark.ml)  # the import puts another one there
    if request.param == "imported by the cell":
        for name in [name for name in sys.modules if (name + ".").startswith("pyspark.ml.")]:
            monkeypatch.delitem(sys.modules, name)


@pytest.mark.matrix(2)
@pytest.mark.usefixtures("packages")
def test_saving_a_pipeline_defers_none_of_its_files(cell: Any) -> None:
    program = cell.capture(SAVE)
    assert len(cell.namespace["stages"]) == 1
    assert [write.name for write in program.writes] == ["letters"]
    assert cell.made() == {"model"}


@pytest.mark.long
@pytest.mark.usefixtures("packages")
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
    assert (len(program.writes), program.eager.settlements) == (1, ())
