"""What is kept for a SparkContext is made once, and goes with it."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

import pytest

from flinkmagic.jvm.contexts import jvm_context, kept_for_context


class Context:
    """Stands for a SparkContext."""


def test_it_is_made_once_for_each_context_and_goes_with_it():
    made = []

    @kept_for_context
    def kept(sc):
        """Say what is kept."""
        made.append(None)
        return [len(made)]

    first, second = Context(), Context()
    assert [kept(first), kept(second), kept(first)] == [[1], [2], [1]]
    assert kept(first) is kept(first)
    assert kept.__doc__ == "Say what is kept."
    del first
    gc.collect()
    assert kept(Context()) == [3]
    assert kept(second) == [2]


def test_what_refers_to_its_context_keeps_it_no_longer():
    context = Context()
    kept_for_context(lambda sc: [sc])(context)
    gone = weakref.ref(context)
    del context
    gc.collect()
    assert gone() is None


def test_the_jvm_is_asked_for_its_context_once_and_a_stopped_one_has_none():
    asked = []
    sc = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: asked.append(None) or "the JVM's"))
    assert [jvm_context(sc), jvm_context(sc), len(asked)] == ["the JVM's", "the JVM's", 1]
    sc._jsc = None
    with pytest.raises(AttributeError, match="stopped"):
        jvm_context(sc)
