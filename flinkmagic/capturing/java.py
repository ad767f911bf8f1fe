"""Small helpers for what is read off the driver's JVM; each call over the gateway costs about 50 µs."""

from __future__ import annotations

import functools
from typing import Any


@functools.lru_cache(maxsize=64)
def java_class(jvm: Any, name: str) -> Any:
    """A Java class by its full name. Found step by step it would cost one call for each part of the name."""
    return getattr(jvm, name)


@functools.lru_cache(maxsize=64)
def scala_object(jvm: Any, name: str) -> Any:
    """A Scala object, where its class has no static methods that forward to it."""
    return getattr(java_class(jvm, name + "$"), "MODULE$")


def option(jvm: Any, value: Any) -> Any:
    """A Scala ``Option``: None is empty."""
    return java_class(jvm, "scala.Option").apply(value)


def skip_commands(jvm: Any) -> Any:
    """The mode in which a command is analysed and planned, and not run."""
    return java_class(jvm, "org.apache.spark.sql.execution.CommandExecutionMode").SKIP()


def items(seq: Any) -> list[Any]:
    """The elements of a Scala ``Seq``."""
    return [seq.apply(i) for i in range(seq.size())]


def texts(seq: Any) -> list[str]:
    """The elements of a Scala collection as text, in one call."""
    return [text for text in seq.mkString("\x01").split("\x01") if text]


def text_map(scala_map: Any) -> dict[str, str]:
    """A Scala map of texts, in one call."""
    entries = (entry.partition(" -> ") for entry in texts(scala_map))
    return {key: value for key, _, value in entries}


def simple_name(jobject: Any) -> str:
    """The name of an object's class, without its package."""
    return str(jobject.getClass().getSimpleName())
