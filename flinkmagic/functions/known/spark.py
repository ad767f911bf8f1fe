"""What of PySpark stands in the pickles of functions and is known to be pure, by module.

What PySpark wraps around a user's function is pickled with it: partly by name, partly as code, which is judged like the
user's own. Left out on purpose: accumulators, ``TaskContext``, ``SparkFiles``, ``RDD.pipe``'s processes. A module whose
names are ``*`` is pure in all its parts.
"""

from __future__ import annotations

SPARK = {
    "pyspark": "Row StorageLevel",
    "pyspark.broadcast": "Broadcast _from_id",
    "pyspark.core.broadcast": "Broadcast _from_id",
    "pyspark.core.rdd": "PythonEvalType portable_hash",
    "pyspark.errors": "*",
    "pyspark.errors.exceptions.base": "*",
    "pyspark.join": "*",
    "pyspark.ml.linalg": "*",
    "pyspark.mllib.linalg": "*",
    "pyspark.rdd": "PythonEvalType portable_hash",
    "pyspark.rddsampler": "RDDRangeSampler RDDSampler RDDStratifiedSampler",
    "pyspark.resultiterable": "*",
    "pyspark.serializers": "*",
    "pyspark.shuffle": "Aggregator ExternalGroupBy ExternalListOfList ExternalMerger ExternalSorter GroupByKey",
    "pyspark.sql": "Row",
    "pyspark.sql.functions": "PandasUDFType arrow_udf pandas_udf udf",
    "pyspark.sql.types": "*",
    "pyspark.statcounter": "*",
    "pyspark.util": "PythonEvalType fail_on_stopiteration inheritable_thread_target",
}

CLOUDPICKLE = frozenset({"cloudpickle", "cloudpickle.cloudpickle", "pyspark.cloudpickle", "pyspark.cloudpickle.cloudpickle"})
"""Where the functions lie that make objects of a pickle again. What they make is looked at."""
