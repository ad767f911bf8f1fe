"""Code that Spark has generated and compiled, found again by other class loaders and by later kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from flinkmagic.jvm.java import java_array
from flinkmagic.reuse.generated_code import keep_generated_code


def echo(more: str) -> str:
    """Code that returns what it is given and more; no earlier kernel has compiled it."""
    name = f"given_{uuid.uuid4().hex}"
    return f"public Object generate(Object[] {name}) {{ return {name}[0] + {more}; }}"


@pytest.fixture
def jvm(spark: SparkSession) -> Iterator[Any]:
    """The driver's JVM, which keeps generated code."""
    keep_generated_code(spark.sparkContext)
    thread = spark._jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    yield spark._jvm
    thread.setContextClassLoader(before)


def compiled(jvm: Any, loader: Any, text: str) -> tuple[str, int]:
    """What code for a class loader returns, and how often Spark has compiled meanwhile."""
    jvm.java.lang.Thread.currentThread().setContextClassLoader(loader)
    code = jvm.org.apache.spark.sql.catalyst.expressions.codegen
    counter = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    before = counter.getCount()
    found = code.CodeGenerator.compile(code.CodeAndComment(text, jvm.PythonUtils.toScalaMap({})))
    count = counter.getCount() - before
    # By its super class's method: py4j remembers methods by the class's name, and all generated classes have the same.
    methods = found._1().getClass().getSuperclass().getMethods()
    generate = next(method for method in methods if method.getName() == "generate")
    given = jvm.java.lang.reflect.Array.newInstance(generate.getParameterTypes()[0].getComponentType(), 1)
    given[0] = java_array(jvm, "given ")
    return generate.invoke(found._1(), given), count


def loader_of(jvm: Any, source: str = "") -> Any:
    """A new class loader beneath that of Spark, with a class of the user's."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getSparkClassLoader())
    compiler.cook(source or "public class Nothing {}")
    return compiler.getClassLoader()


def test_code_that_names_sparks_classes_is_compiled_once_for_all_loaders(jvm: Any) -> None:
    text = echo("org.apache.spark.sql.types.DataTypes.LongType.simpleString()")
    assert compiled(jvm, loader_of(jvm), text) == ("given bigint", 1)
    assert compiled(jvm, loader_of(jvm), text) == ("given bigint", 0)


def test_code_that_names_a_class_of_the_users_is_compiled_for_each_loader(jvm: Any) -> None:
    text = echo("new users.Thing().name()")
    thing = 'package users; public class Thing { public String name() { return "%s"; } }'
    first, second = loader_of(jvm, thing % "first"), loader_of(jvm, thing % "second")
    assert compiled(jvm, first, text) == ("given first", 1)
    assert compiled(jvm, second, text) == ("given second", 1)
    assert compiled(jvm, first, text) == ("given first", 0)


@pytest.mark.long
def test_what_spark_forgets_is_found(jvm: Any) -> None:
    loader = loader_of(jvm)
    texts = [echo(f'"number {number}"') for number in range(120)]  # Spark keeps 100
    assert [compiled(jvm, loader, text)[1] for text in texts] == [1] * 120
    assert [compiled(jvm, loader, text) for text in texts] == [(f"given number {n}", 0) for n in range(120)]


def test_folders_of_other_versions_go_when_they_are_many(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folders = [tmp_path / "flinkmagic" / "generated" / f"version {number}" for number in range(6)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "one.code").touch()
        os.utime(folder, (number + 1, number + 1))
    keep_generated_code(spark.sparkContext)
    left = set(folders[0].parent.iterdir())
    assert left & set(folders) == set(folders[3:])
    assert len(left) == 4


KERNEL = """
import json
import flinkmagic
from flinkmagic.reuse.generated_code import keep_generated_code
spark = flinkmagic.local_session("generated", "local[2]", {"spark.ui.enabled": "false"})
keep_generated_code(spark.sparkContext)
rows = spark.range(1000).selectExpr("id * 3 AS x", "id % 7 AS k").groupBy("k").sum("x").orderBy("k").collect()
counter = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
print(json.dumps([counter.getCount(), [list(row) for row in rows]]))
spark.stop()
"""


def run_kernel(cache: Path) -> tuple[int, list[list[int]]]:
    """How often Spark compiled in a kernel of its own, and the rows of its query."""
    done = subprocess.run(
        [sys.executable, "-c", KERNEL],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    count, rows = json.loads(done.stdout.splitlines()[-1])
    return count, rows


@pytest.mark.long
def test_a_later_kernel_finds_what_was_compiled_unless_it_is_damaged(tmp_path: Path) -> None:
    rows = [[k, sum(3 * one for one in range(1000) if one % 7 == k)] for k in range(7)]
    first, answer = run_kernel(tmp_path)
    assert first > 4
    assert answer == rows
    again, answer = run_kernel(tmp_path)
    assert again <= 1
    assert answer == rows
    files = list(tmp_path.glob("flinkmagic/generated/*/*.code"))
    assert files
    for file in files:
        content = bytearray(file.read_bytes())
        for place in range(400, len(content), 400):
            content[place] ^= 0xFF
        file.write_bytes(content)
    damaged, answer = run_kernel(tmp_path)
    assert damaged > 1
    assert answer == rows


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    first, _ = run_kernel(tmp_path)
    for file in tmp_path.glob("flinkmagic/generated/*/*.code"):
        file.chmod(0o666)
    again, _ = run_kernel(tmp_path)
    assert again >= first
