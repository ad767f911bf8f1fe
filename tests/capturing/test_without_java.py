"""Where the driver's JVM compiles nothing for us, a capture says so before its block runs, and hooks nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.driver.java_classes import CLASSES
from flinkmagic.errors.base import UserError
from flinkmagic.errors.deployment import DriverClassesRefusedError
from flinkmagic.jvm import driver_classes


@pytest.fixture
def _nothing_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the driver's JVM has compiled anything, nor an earlier kernel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(CLASSES, "_compiled", WeakKeyDictionary())


@pytest.fixture
def _without_janino(monkeypatch: pytest.MonkeyPatch, _nothing_compiled: None) -> None:
    """There is no such compiler either."""
    monkeypatch.setattr(driver_classes, "_COMPILER", "org.codehaus.janino.NoCompilerOfThisName")


@pytest.mark.usefixtures("_without_janino")
def test_the_block_is_refused_before_it_runs(spark: Any, tmp_path: Path) -> None:
    ran = []
    with pytest.raises(UserError) as refusal, capture(spark):
        ran.append("the block")
    assert isinstance(refusal.value, DriverClassesRefusedError)
    assert str(refusal.value) == (
        "Spark's driver did not compile Reflect.java, without which no graph is captured or run: there is no "
        "class org.codehaus.janino.NoCompilerOfThisName. Check that the driver's class path holds the Janino that "
        "Spark ships (janino and commons-compiler in its jars folder) and no other, then start the session again."
    )
    assert ran == []
    # Nothing is hooked: a plain write writes.
    spark.range(3).write.parquet(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 3


@pytest.mark.usefixtures("_nothing_compiled")
def test_a_refusal_is_not_remembered(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without_janino:
        without_janino.setattr(driver_classes, "_COMPILER", "org.codehaus.janino.NoCompilerOfThisName")
        with pytest.raises(DriverClassesRefusedError), capture(spark):
            pass
    with capture(spark) as program:
        spark.range(3).where("id > 1")
    assert [call.method for call in program.lineage.calls] == ["range", "where"]
