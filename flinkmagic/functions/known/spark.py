"""Lists by module what of PySpark occurs in the pickles of functions and is known to be pure.

What PySpark wraps around a user's function is pickled with it: partly by name, partly as code, which is judged like the
user's own, except the code of modules that are pure in all their parts. Such a module's names are ``*``. Left out on
purpose: accumulators, ``TaskContext``, ``SparkFiles``, the processes of ``RDD.pipe``.
"""

from __future__ import annotations

SPARK = {
    "pyspark": "Row StorageLevel",
    "pyspark.broadcast": "_from_id Broadcast",
    "pyspark.core.broadcast": "_from_id Broadcast",
    "pyspark.core.rdd": "K O portable_hash PythonEvalType S T T_co U V V1 V2 V3",
    "pyspark.errors": "*",
    "pyspark.errors.exceptions.base": "*",
    "pyspark.join": "*",
    "pyspark.ml.linalg": "*",
    "pyspark.mllib.linalg": "*",
    "pyspark.rdd": "K O portable_hash PythonEvalType S T T_co U V V1 V2 V3",
    "pyspark.rddsampler": "RDDRangeSampler RDDSampler RDDStratifiedSampler",
    "pyspark.resultiterable": "*",
    "pyspark.serializers": "*",
    "pyspark.shuffle": """
        Aggregator ExternalGroupBy ExternalListOfList ExternalMerger ExternalSorter get_used_memory GroupByKey
    """,
    "pyspark.sql": "Row",
    "pyspark.sql.functions": "arrow_udf pandas_udf PandasUDFType udf",
    "pyspark.sql.types": "*",
    "pyspark.statcounter": "*",
    "pyspark.util": "fail_on_stopiteration inheritable_thread_target PythonEvalType",
}

CLOUDPICKLE = frozenset(
    f"{package}{module}"
    for package in ("cloudpickle", "pyspark.cloudpickle")
    for module in ("", ".cloudpickle", ".cloudpickle_fast")
)
"""Modules of the functions that recreate objects of a pickle; 3.5 has the last. What they make is looked at."""
