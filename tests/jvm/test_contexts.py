"""What is kept for a SparkContext is made once, and goes with it."""

from __future__ import annotations

import gc

from flinkmagic.jvm.contexts import kept_for_context


class Context:
    """Stands for a SparkContext: what counts is that it can be referred to weakly."""


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
