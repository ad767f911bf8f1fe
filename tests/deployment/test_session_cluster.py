"""One cluster for each SparkContext, which goes with it."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace

from flinkmagic.deployment import session_cluster as module
from flinkmagic.deployment.session_cluster import session_cluster, submitted_jobs


class Context:
    """Stands for a SparkContext."""


def test_a_context_s_cluster_goes_with_it_and_its_jobs_are_still_told_of(monkeypatch) -> None:
    monkeypatch.setattr(module, "SessionSlots", lambda sc: SimpleNamespace(sc=sc))
    monkeypatch.setattr(module, "Dispatcher", lambda: SimpleNamespace(jobs=lambda: ["a job"]))
    monkeypatch.setattr(module, "_DISPATCHERS", [])
    first, second = Context(), Context()
    assert session_cluster(first) is session_cluster(first)  # type: ignore[arg-type]
    session_cluster(second)  # type: ignore[arg-type]
    gone = weakref.ref(session_cluster(first))  # type: ignore[arg-type]
    del first
    gc.collect()
    assert gone() is None
    assert submitted_jobs() == ["a job", "a job"]
