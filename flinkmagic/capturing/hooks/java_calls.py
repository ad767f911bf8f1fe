"""Lists what calls of Java methods do; a call that is in none of the tables may do anything.

A class is given by its own name and the names of all that it extends or implements. A name that ends with a dot is a
package, with everything below it.
"""

from __future__ import annotations

from collections.abc import Sequence

CONSTRUCTOR = "<init>"

ANY_OBJECT = frozenset({"compareTo", "equals", "getClass", "hashCode", "name", "toString"})
"""Harmless for any object."""

VALUES = frozenset(
    {
        "java.lang.Boolean",
        "java.lang.CharSequence",
        "java.lang.Class",
        "java.lang.Enum",
        "java.lang.Integer",
        "java.lang.Long",
        "java.lang.Math",
        "java.lang.Number",
        "java.lang.StackTraceElement",
        "java.lang.String",
        "java.lang.StringBuilder",
        "java.lang.Throwable",
        "java.lang.management.",
        "java.math.",
        "java.net.URI",
        "java.nio.ByteBuffer",
        "java.nio.charset.",
        "java.text.",
        "java.time.",
        "java.util.AbstractMap",
        "java.util.ArrayList",
        "java.util.Arrays",
        "java.util.Base64",
        "java.util.Calendar",
        "java.util.Collection",
        "java.util.Collections",
        "java.util.Date",
        "java.util.HashMap",
        "java.util.HashSet",
        "java.util.LinkedHashMap",
        "java.util.LinkedList",
        "java.util.List",
        "java.util.Locale",
        "java.util.Map",
        "java.util.Map$Entry",
        "java.util.Optional",
        "java.util.Properties",
        "java.util.Random",
        "java.util.Set",
        "java.util.TimeZone",
        "java.util.TreeMap",
        "java.util.UUID",
        "java.util.regex.",
        "org.apache.hadoop.fs.BlockLocation",
        "org.apache.hadoop.fs.ContentSummary",
        "org.apache.hadoop.fs.FileChecksum",
        "org.apache.hadoop.fs.FileStatus",
        "org.apache.hadoop.fs.FsStatus",
        "org.apache.hadoop.fs.Path",
        "org.apache.hadoop.fs.permission.",
        "org.apache.hadoop.io.Text",
        "org.apache.hadoop.util.VersionInfo",
        "org.apache.log4j.",
        "org.apache.logging.log4j.",
        "org.apache.spark.SparkConf",
        "org.apache.spark.api.java.JavaSparkStatusTracker",
        "org.apache.spark.SparkStatusTracker",
        "org.apache.spark.ml.linalg.",
        "org.apache.spark.sql.Column",
        "org.apache.spark.sql.Encoders",
        "org.apache.spark.sql.RuntimeConfig",
        "org.apache.spark.sql.api.python.PythonSQLUtils",
        "org.apache.spark.sql.catalyst.TableIdentifier",
        "org.apache.spark.sql.catalyst.expressions.Expression",
        "org.apache.spark.sql.catalyst.parser.ParserInterface",
        "org.apache.spark.sql.catalyst.plans.logical.Statistics",
        "org.apache.spark.sql.execution.ui.SQLAppStatusStore",
        "org.apache.spark.sql.functions",
        "org.apache.spark.sql.internal.SQLConf",
        "org.apache.spark.sql.types.",
        "org.apache.spark.status.",
        "org.apache.spark.storage.RDDInfo",
        "org.apache.spark.storage.StorageLevel",
        "org.apache.spark.util.SizeEstimator",
        "org.slf4j.",
        "scala.Enumeration$Value",
        "scala.Option",
        "scala.Predef",
        "scala.Predef$",
        "scala.collection.JavaConverters",
        "scala.collection.immutable.",
        "scala.collection.mutable.",
        "scala.jdk.",
        "scala.math.",
    }
)
"""Classes whose methods and constructors are all harmless: values, plans, settings, logs, Spark's own records."""

_SESSION = {
    "active", "builder", "catalog", "cloneSession", "conf", "experimental", "getActiveSession", "getDefaultSession",
    "implicits", "listenerManager", "newSession", "read", "readStream", "sessionState", "sessionUUID", "sharedState",
    "sparkContext", "sqlContext", "streams", "udf", "version",
}  # fmt: skip
_CONTEXT = {
    "addJobTag", "appName", "applicationAttemptId", "applicationId", "broadcast", "clearJobGroup",
    "clearJobTags", "conf", "defaultMinPartitions", "defaultParallelism", "emptyRDD", "env", "executorEnvs",
    "files", "getAllPools", "getCheckpointDir", "getConf", "getExecutorMemoryStatus", "getJobTags",
    "getLocalProperties", "getLocalProperty", "getOrCreate", "getPersistentRDDs", "getPoolForName",
    "getRDDStorageInfo", "getSchedulingMode", "hadoopConfiguration", "isLocal", "isStopped", "jars",
    "listFiles", "listJars", "master", "parallelize", "range", "removeJobTag", "resources", "sc", "setCallSite",
    "setInterruptOnCancel", "setJobDescription", "setJobGroup", "setLocalProperty", "setLogLevel", "sparkUser",
    "startTime", "statusStore", "statusTracker", "toSparkContext", "uiWebUrl", "version",
}  # fmt: skip
_FRAME = {
    "agg", "alias", "as", "cache", "coalesce", "col", "columns", "crossJoin", "cube", "distinct", "drop",
    "dropDuplicates", "dtypes", "encoder", "except", "exceptAll", "explain", "explainString", "exprEnc", "filter",
    "groupBy", "hint", "intersect", "intersectAll", "isLocal", "isStreaming", "join", "limit", "logicalPlan", "na",
    "offset", "orderBy", "persist", "printSchema", "queryExecution", "randomSplit", "repartition",
    "repartitionByRange", "rollup", "sameSemantics", "sample", "schema", "select", "selectExpr", "semanticHash",
    "sort", "sortWithinPartitions", "sparkSession", "sqlContext", "stat", "storageLevel", "toDF", "union", "unionAll",
    "unionByName", "where", "withColumn", "withColumnRenamed", "write", "writeStream",
}  # fmt: skip
_PLAN = {
    "argString", "canonicalized", "children", "collectLeaves", "expressions", "id", "innerChildren", "metrics",
    "nodeName", "numberedTreeString", "output", "outputOrdering", "outputPartitioning", "prettyJson", "references",
    "requiredChildDistribution", "sameResult", "schema", "schemaString", "simpleString", "subqueries",
    "subqueriesAll", "supportsColumnar", "toJSON", "treeString", "verboseString",
}  # fmt: skip
_SETTINGS_READ = {
    "clone", "get", "getBoolean", "getClassByName", "getDouble", "getFloat", "getInt", "getLong", "getPropsWithPrefix",
    "getRaw", "getResource", "getStrings", "getTrimmed", "getTrimmedStrings", "getValByRegex", "iterator", "size",
}  # fmt: skip

CONFIGURATION = "org.apache.hadoop.conf.Configuration"
SETTINGS_CHANGED = frozenset({
    "set", "setAllowNullValueProperties", "setBoolean", "setBooleanIfUnset", "setClass", "setDouble", "setEnum",
    "setFloat", "setIfUnset", "setInt", "setLong", "setPattern", "setStorageSize", "setStrings", "setTimeDuration",
    "unset",
})  # fmt: skip
"""A pending write has its own snapshot of Hadoop's settings, as of the session's; but not all can be restored."""

WRITE_SETTINGS = ("mapreduce.fileoutputcommitter.", "mapreduce.output.")
"""How the names of Hadoop settings begin that only writes follow. Reads follow the other settings as they are now."""

HARMLESS: dict[str, frozenset[str]] = {
    "java.lang.Runtime": frozenset(
        {"availableProcessors", "freeMemory", "getRuntime", "maxMemory", "totalMemory", "version"}
    ),
    "java.lang.System": frozenset(
        {"currentTimeMillis", "getProperties", "getProperty", "getenv", "identityHashCode", "lineSeparator", "nanoTime"}
    ),
    "java.lang.Thread": frozenset({"currentThread", "getId", "getName", "getStackTrace", "isAlive", "sleep"}),
    "java.io.File": frozenset({CONSTRUCTOR, "getName", "getParent", "getPath", "isAbsolute", "toPath", "toURI"}),
    "java.nio.file.Paths": frozenset({"get"}),
    CONFIGURATION: frozenset({CONSTRUCTOR, *_SETTINGS_READ}),
    "org.apache.spark.SparkContext": frozenset(_CONTEXT),
    "org.apache.spark.SparkEnv": frozenset({"conf", "executorId", "get"}),
    "org.apache.spark.api.java.JavaSparkContext": frozenset({*_CONTEXT, "fromSparkContext"}),
    "org.apache.spark.rdd.RDD": frozenset({"context", "id", "setName", "sparkContext", "toJavaRDD"}),
    "org.apache.spark.api.java.JavaRDDLike": frozenset({"classTag", "context", "id", "rdd", "setName"}),
    "org.apache.spark.sql.Dataset": frozenset(_FRAME),
    "org.apache.spark.sql.RelationalGroupedDataset": frozenset({"agg", "avg", "count", "max", "mean", "min", "sum"}),
    "org.apache.spark.sql.DataFrameReader": frozenset({"format", "option", "options", "schema"}),
    "org.apache.spark.sql.DataFrameWriter": frozenset(
        {"bucketBy", "clusterBy", "format", "mode", "option", "options", "partitionBy", "sortBy"}
    ),
    "org.apache.spark.sql.SQLContext": frozenset(_SESSION | {"getConf", "setConf"}),
    "org.apache.spark.sql.SparkSession": frozenset(_SESSION),
    "org.apache.spark.sql.classic.SparkSession": frozenset(_SESSION),
    "org.apache.spark.sql.execution.QueryExecution": frozenset(
        {
            "analyzed",
            "assertAnalyzed",
            "debug",
            "executedPlan",
            "explainString",
            "id",
            "logical",
            "optimizedPlan",
            "simpleString",
            "sparkPlan",
            "sparkSession",
            "stringWithStats",
            "tracker",
            "withCachedData",
        }
    ),
    "org.apache.spark.sql.execution.QueryExecution$debug$": frozenset({"codegen", "codegenToSeq"}),
    "org.apache.spark.sql.catalyst.plans.QueryPlan": frozenset(_PLAN),
    "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan": frozenset(
        {"isStreaming", "maxRows", "resolved", "stats"}
    ),
    "org.apache.spark.sql.internal.SessionState": frozenset(
        {
            "analyzer",
            "catalog",
            "catalogManager",
            "conf",
            "experimentalMethods",
            "functionRegistry",
            "newHadoopConf",
            "newHadoopConfWithOptions",
            "optimizer",
            "planner",
            "sqlParser",
            "udfRegistration",
        }
    ),
    "org.apache.spark.sql.internal.SharedState": frozenset({"conf", "hadoopConf", "sparkContext", "statusStore"}),
    "org.apache.spark.api.python.PythonUtils": frozenset(
        {"getPythonAuthSocketTimeout", "getSparkBufferSize", "isEncryptionEnabled", "toList", "toSeq"}
    ),
    "org.apache.hadoop.fs.FileSystem": frozenset(
        {
            "close",
            "get",
            "getCanonicalServiceName",
            "getConf",
            "getDefaultBlockSize",
            "getDefaultReplication",
            "getDefaultUri",
            "getHomeDirectory",
            "getLocal",
            "getScheme",
            "getStatistics",
            "getStatus",
            "getUri",
            "getWorkingDirectory",
            "makeQualified",
            "newInstance",
        }
    ),
}
"""Methods of a class that are harmless: they ask, or make something that does nothing until it is asked."""

FRAME_ACTIONS = frozenset(
    {
        "collect", "collectAsList", "collectToPython", "count", "first", "foreach", "head", "inputFiles", "isEmpty",
        "javaRDD", "rdd", "show", "showString", "tail", "take", "takeAsList", "toJavaRDD", "toLocalIterator",
    }
)  # fmt: skip
"""Methods of a Dataset that read what its plan reads."""

FILE_READS = frozenset(
    {
        "access", "exists", "getAclStatus", "getContentSummary", "getFileBlockLocations", "getFileChecksum",
        "getFileStatus", "getLength", "getLinkTarget", "getQuotaUsage", "getXAttr", "getXAttrs", "globStatus",
        "isDirectory", "isFile", "listFiles", "listLocatedStatus", "listStatus", "listStatusBatch",
        "listStatusIterator", "open", "openFile", "resolvePath",
    }
)  # fmt: skip
"""Methods of Hadoop's FileSystem that read at the paths that they are given."""
FILE_CHANGES = frozenset(
    {
        "append", "appendFile", "concat", "copyFromLocalFile", "copyToLocalFile", "create", "createFile",
        "createNewFile", "createNonRecursive", "createSymlink", "delete", "deleteOnExit", "mkdirs", "moveFromLocalFile",
        "moveToLocalFile", "rename", "setOwner", "setPermission", "setReplication", "setTimes", "truncate",
    }
)  # fmt: skip
"""Methods that change, or may change, what is at the paths that they are given."""

HANDLES = frozenset(
    {
        "java.io.BufferedReader",
        "java.io.InputStream",
        "java.io.InputStreamReader",
        "java.io.OutputStream",
        "java.io.OutputStreamWriter",
        "java.io.Writer",
        "java.io.Reader",
        "java.util.Scanner",
        "org.apache.commons.io.IOUtils",
        "org.apache.hadoop.fs.FutureDataInputStreamBuilder",
        "org.apache.hadoop.fs.RemoteIterator",
        "org.apache.hadoop.io.IOUtils",
    }
)
"""What is made from an open file: using it reads or changes what opening it did."""


def is_harmless(types: Sequence[str], method: str) -> bool:
    """Return whether a method of a class, given with its supertypes, is known to touch no data."""
    if method in ANY_OBJECT:
        return True
    for name in types:
        if name in VALUES or method in HARMLESS.get(name, ()):
            return True
        parts = name.split(".")
        if any(".".join(parts[:length]) + "." in VALUES for length in range(1, len(parts))):
            return True
    return False
