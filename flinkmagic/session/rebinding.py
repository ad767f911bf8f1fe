"""Binds the names of results and boundaries, after a run, to the rows that it computed, as after ``persist()``.

1. A name is bound only if it still names the program's own DataFrame, in the namespace in which the program was
   captured, and only after a run that has finished. A program captured without a namespace of its own (such as a
   ``with`` block in a function) keeps its names: a block of Python code does not change variables.
2. The new DataFrame has the same columns (by expression id: a column taken from the DataFrame before is still one of
   its columns), belongs to the user's own session, and reads the kept rows.
3. When the rows are released, and when the graph runs again, names that still refer to kept rows are bound to their
   definitions again.
4. Only names are bound. A DataFrame that is defined again, even an equal one, is computed again.

IPython's own names (``_``, ``_12``) begin with an underscore and are left alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from flinkmagic.options import NO_RETENTION
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.program import Program
    from flinkmagic.deployment import Deployment
    from flinkmagic.options import JobOptions


class Rebinding:
    """The names of one run."""

    def __init__(self, program: Program) -> None:
        assert program.namespace is not None
        self._program = program
        self._namespace: MutableMapping[str, Any] = program.namespace
        self._lock = threading.Lock()
        self._bound: list[tuple[str, DataFrame, DataFrame]] = []
        self._is_over = False

    def bind(self, deployment: Deployment) -> None:
        """Bind names to the rows that a finished deployment has kept."""
        if deployment.status is not JobStatus.FINISHED:
            return
        kept = self._kept(deployment)
        with self._lock:
            for originals, frame in () if self._is_over else kept:
                for name in _names_of(self._namespace, originals):
                    self._bound.append((name, self._namespace[name], frame))
                    self._namespace[name] = frame

    def restore(self) -> None:
        """Bind names to their definitions again, for good."""
        with self._lock:
            self._is_over = True
            for name, original, frame in self._bound:
                if self._namespace.get(name) is frame:
                    self._namespace[name] = original
            self._bound.clear()

    def _kept(self, deployment: Deployment) -> list[tuple[tuple[DataFrame, ...], DataFrame]]:
        finished = {sink.name for sink in deployment.finished_sinks() if sink.kind == "result"}
        results = [(name, one) for name, one in self._program.results.items() if name in finished]
        kept = [(boundary.dataframes, frame) for boundary, frame in deployment.kept_boundaries()]
        kept += [((original,), deployment.result(name)) for name, original in results]
        for originals, frame in kept:
            for original in originals:
                number = self._program.frame_of(original)
                if number is not None:
                    self._program.lineage.registry.alias(frame, number)
        return kept


def rebinding(program: Program, options: JobOptions) -> Rebinding | None:
    """Return what rebinds the names of a program after its run; None if they are left alone."""
    if options.retain == NO_RETENTION or program.namespace is None:
        return None
    return Rebinding(program)


def _names_of(namespace: Mapping[str, Any], frames: Iterable[DataFrame]) -> list[str]:
    wanted = {id(frame) for frame in frames}
    return [name for name, value in list(namespace.items()) if id(value) in wanted and not name.startswith("_")]
