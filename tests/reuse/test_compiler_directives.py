from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from flinkmagic.jvm.java import java_array
from flinkmagic.reuse.compiler_directives import COMPILED_BY_C1, leave_to_c1
from flinkmagic.reuse.java_classes import CLASSES
from flinkmagic.session.actions.warm_up import warm_up

OF_ROWS = (
    "java.io.ByteArrayOutputStream",
    "java.lang.invoke.DirectMethodHandle#internalMemberName",
    "java.lang.invoke.Invokers#checkCustomized",
    "java.math.BigDecimal",
    "java.util.regex.Pattern",
    "com.fasterxml.jackson.core.json.UTF8StreamJsonParser",
    "com.univocity.parsers.csv.CsvParser",
    "org.apache.parquet.column.impl.ColumnReaderBase",
    "org.apache.spark.shuffle.sort.UnsafeShuffleWriter",
    "org.apache.spark.sql.catalyst.csv.UnivocityParser",
    "org.apache.spark.sql.catalyst.expressions.Alias#eval",
    "org.apache.spark.sql.catalyst.expressions.BinaryExpression#eval",
    "org.apache.spark.sql.catalyst.expressions.Encode#nullSafeEval",
    "org.apache.spark.sql.catalyst.expressions.GeneratedClass",
    "org.apache.spark.sql.catalyst.expressions.UnsafeRow",
    "org.apache.spark.sql.catalyst.expressions.codegen.BufferHolder",
    "org.apache.spark.sql.catalyst.expressions.codegen.UnsafeWriter",
    "org.apache.spark.sql.catalyst.json.JacksonParser",
    "org.apache.spark.sql.catalyst.util.DateTimeUtils",
    "org.apache.spark.sql.execution.SparkPlan",
    "org.apache.spark.sql.execution.joins.UnsafeHashedRelation",
    "org.apache.spark.sql.types.Decimal",
    "org.apache.spark.unsafe.types.UTF8String",
    "org.apache.spark.util.collection.TimSort",
    "scala.collection.immutable.Vector",
)
"""Classes that go through rows, some with the method that does."""

SPINNERS = {"jdk/internal/classfile/*.*", "jdk/internal/org/objectweb/asm/*.*"}
"""With the one newer Java makes the classes of lambdas, with the other one older Java."""


def is_matched(pattern: str, name: str) -> bool:
    """Whether a class's method, or any one, matches a pattern of a directive."""
    owner, _, method = name.partition("#")
    return fnmatchcase(f"{owner.replace('.', '/')}.{method or 'apply'}", pattern)


@pytest.mark.parametrize("name", OF_ROWS)
def test_what_goes_through_rows_is_left_to_the_second_compiler(name: str) -> None:
    assert not any(is_matched(pattern, name) for pattern in COMPILED_BY_C1)


def command(spark: SparkSession, name: str) -> str:
    """What a command of HotSpot's prints, as `jcmd PID COMMAND` does."""
    jvm: Any = spark._jvm
    # By the interface: the bean server's own class is not exported.
    methods = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
    invoke = next(method for method in methods if method.getName() == "invoke")
    commands = jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    texts = jvm.java.lang.Class.forName("[Ljava.lang.String;")
    signature, none = (jvm.java.lang.reflect.Array.newInstance(texts.getComponentType(), length) for length in (1, 0))
    signature[0] = texts.getName()
    return str(invoke.invoke(server, java_array(jvm, commands, name, java_array(jvm, none), signature)))


def test_each_pattern_matches_methods_of_classes_that_the_driver_has_loaded(spark: SparkSession) -> None:
    spark.sql("SELECT id, count(*) FROM range(100) GROUP BY id").collect()
    warm_up(spark).join()  # loads our own classes
    names = re.findall(r"[\w.$]+(?=/)", command(spark, "vmClassHierarchy"))
    names = [name for name in names if "$$Lambda" not in name and "GeneratedClass" not in name]  # have no loader
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def is_there(pattern: str) -> bool:
        classes, _, methods = pattern.rpartition(".")
        found = (name for name in names if is_matched(f"{classes}.*", name))
        if methods == "*":
            return next(found, None) is not None
        owners = (jvm.java.lang.Class.forName(name, False, loader) for name in found)
        return any(fnmatchcase(one.getName(), methods) for owner in owners for one in owner.getDeclaredMethods())

    assert {pattern for pattern in COMPILED_BY_C1 if not is_there(pattern)} < SPINNERS


def test_the_jvm_takes_the_directives_once(spark: SparkSession) -> None:
    leave_to_c1(spark.sparkContext)
    leave_to_c1(spark.sparkContext)
    printed = command(spark, "compilerDirectivesPrint")
    assert {pattern: printed.count(f" {pattern}") for pattern in COMPILED_BY_C1} == dict.fromkeys(COMPILED_BY_C1, 1)


def test_directives_that_the_jvm_does_not_take_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "directives.json"
    file.write_text('[{match: "**.*"}]', encoding="utf-8")
    fresh: Any = CLASSES.new_instance(spark.sparkContext._gateway, "CompilerDirectives")
    with pytest.raises(Py4JJavaError, match="IllegalStateException"):
        fresh.add(str(file))
