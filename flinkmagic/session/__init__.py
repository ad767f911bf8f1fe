"""Compiles graphs and runs their jobs: the Python API beneath the magics.

Its parts are imported on first use, so that loading the extension costs next to nothing. What a notebook shows is not
decided here, but in `magics`; stages run in `deployment`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.lazy_imports import imported_on_use

if TYPE_CHECKING:
    from flinkmagic.capturing.capture import capture
    from flinkmagic.capturing.operator_options import with_options
    from flinkmagic.deployment.session_cluster import submitted_jobs
    from flinkmagic.reuse.class_archive import make_class_archive, offer_class_archive
    from flinkmagic.reuse.durable_store import durable_store
    from flinkmagic.session.actions.session_actions import SessionActions
    from flinkmagic.session.actions.session_writes import SessionWrite
    from flinkmagic.session.actions.warm_up import needs_rehearsal, rehearse, warm_up
    from flinkmagic.session.compiled_graph import CompiledGraph, compile, start_stream
    from flinkmagic.session.job import Job
    from flinkmagic.session.releasing import release_retained, retained
    from flinkmagic.session.simulated_run import SimulatedRun, simulate_graph

__all__, __getattr__ = imported_on_use(__name__)
