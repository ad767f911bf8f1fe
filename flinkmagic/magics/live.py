"""A job while it runs: a progress line that is updated in place, and the final picture."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle, display

from flinkmagic.display import progress_line
from flinkmagic.errors import JobFailedError
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import CompiledGraph, Job

UPDATE_S = 0.25
"""Between two looks at a running job: 4 updates a second."""


def run_live(graph: CompiledGraph) -> Job:
    """Run a graph, showing how far it is; the final picture takes the line's place.

    Raises
    ------
    JobFailedError
        Where the job failed; the picture shows where.
    KeyboardInterrupt
        Where the kernel was interrupted; the job has been cancelled by then.
    """
    line = _ProgressLine()
    job = graph.run(wait=False)
    try:
        while not job.wait(UPDATE_S).is_terminal:
            line.show(progress_line(job.snapshot()))
    except KeyboardInterrupt:
        job.cancel()
        job.wait()
        raise
    finally:
        line.end(graph, job)
    if job.status is JobStatus.FAILED:
        raise JobFailedError(graph.name, [str(entry.root.error) for entry in job.exceptions()])
    return job


class _ProgressLine:
    """One line that is rewritten: a display in a notebook, a carriage return in a terminal."""

    def __init__(self) -> None:
        shell = get_ipython()
        self._in_notebook = shell is not None and hasattr(shell, "kernel")
        self._handle: DisplayHandle | None = None
        self._width = 0

    def show(self, text: str) -> None:
        if not self._in_notebook:
            sys.stdout.write("\r" + text.ljust(self._width))
            sys.stdout.flush()
            self._width = len(text)
        else:
            self._put({"text/plain": text})

    def end(self, graph: CompiledGraph, job: Job) -> None:
        """Put the picture with its final colours, and the report, where the line was."""
        bundle = dict(graph.mime_bundle(job.snapshot()))
        bundle["text/plain"] = f"{graph.summary()}"
        if self._in_notebook:
            self._put(bundle)
        else:
            self.show("")
            sys.stdout.write("\r")
            print(bundle["text/plain"])

    def _put(self, bundle: Mapping[str, Any]) -> None:
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
