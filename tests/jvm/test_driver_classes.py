"""Java that the driver compiles."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.errors.deployment import DriverClassesRefusedError
from flinkmagic.jvm.driver_classes import DriverClasses

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
MARKED_GREETING = """
package javatest;

public class Greeting {
    private final String marks;

    public Greeting(String mark, int times) {
        this.marks = times == 2 ? mark + mark : mark;
    }

    public String greet(String whom) {
        return /* words */ + whom + marks;
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
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "javatest" / "java"


def test_classes_use_others(spark: Any, package: Path) -> None:
    (package / "Greeting.java").write_text(GREETING)
    (package / "LoudGreeting.java").write_text(LOUD_GREETING)
    classes = DriverClasses("javatest")
    gateway = spark.sparkContext._gateway
    assert classes.new_instance(gateway, "LoudGreeting").greet("you") == "HELLO, YOU"
    assert classes.new_instance(gateway, "Greeting").greet("you") == "hello, you"


def test_a_class_is_compiled_once(spark: Any, package: Path) -> None:
    (package / "Greeting.java").write_text(GREETING)
    classes = DriverClasses("javatest")
    first = classes.new_instance(spark.sparkContext._gateway, "Greeting")
    (package / "Greeting.java").write_text("no longer Java")
    second = classes.new_instance(spark.sparkContext._gateway, "Greeting")
    assert first.getClass().equals(second.getClass())


def test_a_source_takes_text_and_a_constructor_arguments(spark: Any, package: Path) -> None:
    (package / "Greeting.java").write_text(MARKED_GREETING)
    classes = DriverClasses("javatest", filled=("Greeting",))
    gateway = spark.sparkContext._gateway
    greeting = classes.new_instance(gateway, "Greeting", "!", 2, filled={"/* words */": '"good day, "'})
    assert greeting.greet("you") == "good day, you!!"


def test_an_instance_is_shared_by_those_who_ask_for_that(spark: Any, package: Path) -> None:
    (package / "Greeting.java").write_text(GREETING)
    classes, gateway = DriverClasses("javatest"), spark.sparkContext._gateway
    shared = classes.shared_instance(gateway, "Greeting")
    assert classes.shared_instance(gateway, "Greeting") is shared
    assert not classes.new_instance(gateway, "Greeting").equals(shared)


def test_a_later_kernel_compiles_nothing(spark: Any, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "Greeting.java").write_text(GREETING)
    (package / "LoudGreeting.java").write_text(LOUD_GREETING)
    (package / "Marked.java").write_text(MARKED_GREETING.replace("Greeting", "Marked"))
    gateway = spark.sparkContext._gateway
    filled = {"/* words */": '"good day, "'}

    def load() -> DriverClasses:
        return DriverClasses("javatest", filled=("Marked",))

    first = load()
    first.compile_all(gateway)
    assert first.new_instance(gateway, "Marked", "!", 2, filled=filled).greet("you") == "good day, you!!"

    monkeypatch.setattr("flinkmagic.jvm.driver_classes._COMPILER", "org.codehaus.janino.NoCompiler")
    second = load()
    second.compile_all(gateway)
    loud = second.new_instance(gateway, "LoudGreeting")
    assert loud.greet("you") == "HELLO, YOU"
    assert loud.getClass().getName() != first.new_instance(gateway, "LoudGreeting").getClass().getName()
    assert second.new_instance(gateway, "Marked", "!", 2, filled=filled).greet("you") == "good day, you!!"

    (package / "Greeting.java").write_text(GREETING.replace("hello", "hi"))
    with pytest.raises(DriverClassesRefusedError, match="NoCompiler"):
        load().new_instance(gateway, "LoudGreeting")


def test_other_text_in_a_source_is_another_class(spark: Any, package: Path) -> None:
    (package / "Greeting.java").write_text(MARKED_GREETING)
    gateway = spark.sparkContext._gateway
    for words in ("good day, ", "good night, "):
        classes = DriverClasses("javatest", filled=("Greeting",))
        greeting = classes.new_instance(gateway, "Greeting", "!", 1, filled={"/* words */": f'"{words}"'})
        assert greeting.greet("you") == f"{words}you!"


def test_what_does_not_compile_is_named(spark: Any, package: Path) -> None:
    (package / "Greeting.java").write_text(GREETING.replace("return", "retrun"))
    with pytest.raises(DriverClassesRefusedError, match=r"did not compile Greeting\.java") as refusal:
        DriverClasses("javatest").new_instance(spark.sparkContext._gateway, "Greeting")
    assert refusal.value.name == "Greeting"
