"""One cluster for each SparkContext, as long as that runs."""

from __future__ import annotations

from types import SimpleNamespace

from flinkmagic.deployment import session_cluster as module
from flinkmagic.deployment.session_cluster import session_cluster


def context(monkeypatch):
    """A context that runs; `_jsc` is what PySpark takes from one that is stopped."""
    monkeypatch.setattr(module, "SessionSlots", lambda sc: SimpleNamespace(sc=sc))

    class Context(SimpleNamespace):
        __hash__ = object.__hash__

    return Context(_jsc=object())


def test_a_stopped_context_s_cluster_goes_when_the_next_one_comes(monkeypatch) -> None:
    monkeypatch.setattr(module, "_CLUSTERS", {})
    monkeypatch.setattr(module, "_DISPATCHERS", [])
    first, second = context(monkeypatch), context(monkeypatch)
    assert session_cluster(first) is session_cluster(first)
    first._jsc = None
    session_cluster(second)
    assert list(module._CLUSTERS) == [second]
