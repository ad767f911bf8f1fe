"""Makes DataFrames over a query whose stages have run, except the last: they run only that one.

An action collects, counts or hands out the rows of its DataFrame by Spark's own methods, which run the physical plan of
the DataFrame's `QueryExecution`. Here that plan is the job's: its exchanges are the very objects whose stages have run,
so Spark finds them finished and skips them. Seen on 4.3.0: ``collect``, ``toPandas`` (by Arrow, too), ``toArrow``,
``toLocalIterator``, ``tail`` and ``foreach`` take the plan as it is; what plans a query of its own around the
DataFrame's (``show``, the statistics) gets a DataFrame over rows instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from flinkmagic.capturing.writes.sparks_errors import say_where
from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.deployment.stages.session_queries import query_over_plan, run_as_query
from flinkmagic.jvm.java import dataset_class, dataset_of, execution_of, option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.planning.stage_handles import StageHandle


class FinishedQuery:
    """The query of a DataFrame, run up to its last stage.

    Parameters
    ----------
    called : str
        The JVM's method that plain PySpark calls for the action: ``o45.count``.
    """

    def __init__(self, df: DataFrame, handle: StageHandle, called: str) -> None:
        self._df, self._called = df, called
        self._spark: Any = df.sparkSession
        self._sc = self._spark.sparkContext
        self._query = execution_of(df).commandExecuted()
        self._plan = handle.make()
        self._execution = query_over_plan(self._sc, self._spark._jsparkSession, self._query, self._plan)

    def frame(self) -> DataFrame:
        """Return the DataFrame over the plan: its own actions run the last stage only."""
        made = dataset_class(self._sc._jvm)(self._execution, self._df._jdf.encoder())
        return self._as_frame(made)

    def number(self, name: str) -> int:
        """Return the number that is the query's only row; listeners know the query by this name of Spark's."""
        return int(self._collected(name).data().head().getLong(0))

    def has_rows(self, name: str) -> bool:
        """Return whether the query has any row; listeners know it by this name of Spark's."""
        return not self._collected(name).data().isEmpty()

    def tell_of_failure(self, name: str, error: Exception) -> None:
        """Tell Spark, and so the user's listeners and the SQL tab, that it has failed; nothing runs for that."""
        raised = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        if raised is not None:
            failed = CLASSES.new_instance(self._sc._gateway, "FailedQuery", raised)
            failed.tell(self._execution, option(self._sc._jvm, name))

    def _collected(self, name: str) -> Any:
        """Return the rows as a ``LocalRelation``."""
        body = CLASSES.new_instance(self._sc._gateway, "CollectedRows", self._plan, self._query.output())
        try:
            return run_as_query(self._sc, self._execution, name, body)
        except Py4JJavaError as error:
            say_where(error, f"calling {self._called}")
            raise

    def local_frame(self) -> DataFrame:
        """Collect the rows, and return a DataFrame over them that runs nothing."""
        # By Spark's name for what `show` runs; what listeners hear of the action that follows does not say the sources.
        rows = self._collected("head")
        return self._as_frame(dataset_of(self._sc._jvm, self._spark._jsparkSession, rows))

    def rows_frame(self) -> DataFrame:
        """Return a DataFrame over the rows of the last stage, which each query of it runs again."""
        schema = self._df._jdf.schema()
        rows = self._plan.execute()
        return self._as_frame(self._spark._jsparkSession.internalCreateDataFrame(rows, schema, False))

    def _as_frame(self, jdf: Any) -> DataFrame:
        from pyspark.sql import DataFrame

        return DataFrame(jdf, self._spark)
