"""The JVM called by hand while writes are pending: what touches them settles; what asks does not."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from flinkmagic.errors.capturing import PendingWriteError

HADOOP = """\
    jvm, Path = spark._jvm, spark._jvm.org.apache.hadoop.fs.Path
    files = jvm.org.apache.hadoop.fs.FileSystem.get(spark.sparkContext._jsc.hadoopConfiguration())
    df = spark.read.parquet(at("in"))
    df.write.mode("overwrite").parquet(at("out"))
    """

TOUCHING = {
    "exists": 'files.exists(Path(at("out") + "/_SUCCESS"))',
    "listStatus": 'sum(one.isFile() for one in files.listStatus(Path(at("out")))) > 1',
    "globStatus": 'len(files.globStatus(Path(at("o*/_SUCC*")))) ',
    "open": 'files.open(Path(at("out") + "/_SUCCESS")).available()',
    "delete an input": 'files.delete(Path(at("in")), True)',
    "rename over": '(files.delete(Path(at("in")), True), files.rename(Path(at("out")), Path(at("in"))))[1]',
    "mkdirs": 'files.mkdirs(Path(at("out") + "/sub"))',
    "create": 'files.create([one.getPath() for one in files.listStatus(Path(at("in"))) if one.getLen()][0]).close()',
    "copyFromLocalFile": 'files.copyFromLocalFile(Path("file:" + at("note")), Path(at("in")))',
    "relative to another": 'files.exists(Path(Path(at("out")), "_SUCCESS"))',
    "of the path": 'Path(at("out")).getFileSystem(spark._jsc.hadoopConfiguration()).exists(Path(at("out")))',
    "by constructor": 'jvm.java.io.FileWriter(at("in") + "/more").close()',
    "by a file": 'jvm.java.io.File(at("out")).exists()',
    "static": 'jvm.org.apache.hadoop.fs.FileUtil.fullyDelete(jvm.java.io.File(at("in")))',
    "rows": 'spark.read.parquet(at("in"))._jdf.union(df._jdf).write().mode("append").parquet(at("in"))',
    "SQL": "spark._jsparkSession.sql(f\"select count(*) from parquet.`{at(chr(111) + 'ut')}`\").first().getLong(0)",
    "lists later": '[*map(str, [files.listFiles(Path(at("out")), True).hasNext()])]',
}


@pytest.mark.matrix(5)
@pytest.mark.parametrize("line", TOUCHING.values(), ids=TOUCHING.keys())
def test_calls_that_touch_a_pending_write(cell: Any, numbers: Any, line: str) -> None:
    source = textwrap.dedent(HADOOP) + f"got = {line}\n"

    def begin() -> None:
        cell.plain('df = None\nfor place in ("in", "out"): spark.range(3).write.mode("overwrite").parquet(at(place))')
        (cell.folder / "note").write_text("note")

    begin()
    cell.plain(source)
    plain = cell.namespace["got"], {name.rsplit("/", 1)[0] for name in cell.files()}
    begin()
    for path in (cell.folder / "out").iterdir():
        path.unlink()
    before = cell.files()
    with pytest.raises(PendingWriteError, match=r"cell 3, line 5: .* cell 3, line 4"):
        cell.capture(source)
    assert cell.files() == before
    program = cell.capture(source, deploying=True)
    assert [(one.cause, one.location.line) for one in program.eager.settlements] == [("jvm", 5)]
    assert (cell.namespace["got"], {name.rsplit("/", 1)[0] for name in cell.files()}) == plain


def test_calls_that_only_ask_leave_writes_pending(cell: Any, numbers: Any) -> None:
    numbers("in", 3)
    source = textwrap.dedent(HADOOP) + textwrap.dedent("""\
        query = df.where("id > 1")._jdf.queryExecution()
        jdf = df._jdf
        asked = [
            query.toString(), query.optimizedPlan().treeString(), query.executedPlan().toString(), query.simpleString(),
            query.optimizedPlan().stats().sizeInBytes(), query.analyzed().schema().json(),
            jdf.schema().treeString(), jdf.drop("id").columns(), jdf.filter("id > 1").queryExecution().analyzed(),
            jvm.java.lang.System.currentTimeMillis(), jvm.java.lang.System.getProperty("java.version"),
            jvm.java.util.ArrayList([1, 2]).size(), jvm.java.net.URI("file:/x").getPath(),
            jvm.java.lang.Runtime.getRuntime().availableProcessors(),
            spark.sparkContext._jsc.sc().version(), spark._jsc.getConf().get("spark.app.name"),
            spark._jsc.hadoopConfiguration().get("fs.defaultFS"),
            spark._jsc.hadoopConfiguration().set("mapreduce.fileoutputcommitter.algorithm.version", "2"),
            spark._jsc.hadoopConfiguration().set("mapreduce.fileoutputcommitter.algorithm.version", "1"),
            spark._jsc.hadoopConfiguration().setBoolean("mapreduce.fileoutputcommitter.marksuccessfuljobs", False),
            spark._jsc.hadoopConfiguration().unset("mapreduce.fileoutputcommitter.marksuccessfuljobs"),
            spark._jsparkSession.sessionState().conf().numShufflePartitions(),
            jvm.org.apache.spark.sql.functions.lit(1).toString(), jvm.scala.Option.apply("x").get(),
            files.getUri().toString(), files.getWorkingDirectory().toString(),
            files.makeQualified(Path("a")).toString(),
            files.exists(Path(at("elsewhere"))), files.mkdirs(Path(at("made"))), files.delete(Path(at("made")), True),
            files.listStatus(Path(at("in")))[0].getLen(), jdf.count(), jdf.showString(20, 20, False),
        ]
        stream = files.create(Path(at("made/text")))
        stream.write(bytearray(b"text"))
        stream.close()
        reader = jvm.java.io.BufferedReader(jvm.java.io.InputStreamReader(files.open(Path(at("made/text")))))
        asked.append(reader.readLine())
        listed = files.listFiles(Path(at("in")), True)
        while listed.hasNext():
            asked.append(listed.next().getPath().getName())
        jvm.org.apache.logging.log4j.LogManager.getLogger("cell").debug("asked")
        """)
    program = cell.capture(source)
    assert (len(program.writes), program.eager.settlements) == (1, ())
    asked = cell.namespace["asked"]
    assert "text" in asked
    assert sum(str(one).endswith(".parquet") for one in asked) == 1
    assert cell.made() == {"in", "made"}


@pytest.mark.parametrize("name", ["parquet.block.size", "fs.file.impl.disable.cache", "mapreduce.output.other"])
def test_settings_that_a_pending_write_would_not_be_spared_settle_it(cell: Any, numbers: Any, name: str) -> None:
    """What reads go by, and what was not set at all: an entry of a session cannot say that nothing is set."""
    numbers("in", 3)
    source = f"""\
        spark.read.parquet(at("in")).write.parquet(at("out"))
        spark._jsc.hadoopConfiguration().set("{name}", "1000")
        spark._jsc.hadoopConfiguration().unset("{name}")
        """
    with pytest.raises(PendingWriteError, match="line 2"):
        cell.capture(source)
    assert cell.spark._jsc.hadoopConfiguration().get(name) is None
    program = cell.capture(source, deploying=True)
    assert (len(program.writes), [one.location.line for one in program.eager.settlements]) == (0, [2])


def test_rows_that_the_jvm_reads_settle_where_a_pending_write_takes_them(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    source = """\
        df = spark.read.parquet(at("x"))
        spark.range(9).write.mode("overwrite").parquet(at("x"))
        n = df._jdf.count()
        """
    with pytest.raises(PendingWriteError, match=r"line 3: .* reads"):
        cell.capture(source)
    assert cell.rows("x") == [0, 1, 2]


def test_what_pyspark_calls_itself_is_not_the_users_call(cell: Any) -> None:
    program = cell.capture("""\
        df = spark.range(3)
        df.write.parquet(at("out"))
        told = [df.columns, df.schema, df.dtypes, str(F.col("id") + 1), df.storageLevel, df.isStreaming]
        spark.conf.set("spark.sql.shuffle.partitions", spark.conf.get("spark.sql.shuffle.partitions"))
        spark.sparkContext.setJobDescription(None)
        df.explain()
        view = df.createOrReplaceTempView("of_the_jvm")
        told += [spark.catalog.listTables(), spark.catalog.currentDatabase(), spark.sparkContext.defaultParallelism]
        other = spark.newSession()
        """)
    assert (len(program.writes), program.eager.settlements) == (1, ())


def test_methods_of_the_users_own_java_classes_settle(cell: Any) -> None:
    cell.plain("""\
        compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
        code = "public String toString() { return \\"own\\"; } public int run() { return 7; }"
        compiler.cook("public class Own { " + code + " }")
        own = compiler.getClassLoader().loadClass("Own").newInstance()
        """)
    program = cell.capture("""\
        spark.range(3).write.parquet(at("out"))
        text = own.toString()
        """)
    assert (cell.namespace["text"], program.eager.settlements) == ("own", ())
    source = """\
        spark.range(3).write.mode("overwrite").parquet(at("out"))
        n = own.run()
        """
    with pytest.raises(PendingWriteError, match=r"line 2: .* may read or change"):
        cell.capture(source)
    assert [one.cause for one in cell.capture(source, deploying=True).eager.settlements] == ["jvm"]
    assert cell.namespace["n"] == 7
