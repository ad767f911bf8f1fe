"""Java that the driver compiles."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.capturing.driver_classes import DriverClasses
from flinkmagic.errors.deployment import DriverClassesRefusedError

GREETING = """
package javatest;

public class Greeting {
    public String greet(String whom) {
        return "hello, " + whom;
    }
}
"""
LOUD_GREETING = """
package javatest;

public class LoudGreeting {
    public String greet(String whom) {
        return new Greeting().greet(whom).toUpperCase();
    }
}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python package with Java sources beside it."""
    (tmp_path / "javatest" / "java").mkdir(parents=True)
    (tmp_path / "javatest" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "javatest", raising=False)
    return tmp_path / "javatest" / "java"


def test_classes_use_those_before_them(spark: Any, package: Path) -> None:
    (package / "Greeting.java").write_text(GREETING)
    (package / "LoudGreeting.java").write_text(LOUD_GREETING)
    classes = DriverClasses("javatest", ("Greeting", "LoudGreeting"))
    gateway = spark.sparkContext._gateway
    assert classes.new_instance(gateway, "Greeting").greet("you") == "hello, you"
    assert classes.new_instance(gateway, "LoudGreeting").greet("you") == "HELLO, YOU"


def test_a_class_is_compiled_once(spark: Any, package: Path) -> None:
    (package / "Greeting.java").write_text(GREETING)
    classes = DriverClasses("javatest", ("Greeting",))
    first = classes.new_instance(spark.sparkContext._gateway, "Greeting")
    (package / "Greeting.java").write_text("no longer Java")
    second = classes.new_instance(spark.sparkContext._gateway, "Greeting")
    assert first.getClass().equals(second.getClass())


def test_what_does_not_compile_is_named(spark: Any, package: Path) -> None:
    (package / "Greeting.java").write_text(GREETING.replace("return", "retrun"))
    with pytest.raises(DriverClassesRefusedError, match=r"did not compile Greeting\.java") as refusal:
        DriverClasses("javatest", ("Greeting",)).new_instance(spark.sparkContext._gateway, "Greeting")
    assert refusal.value.name == "Greeting"
