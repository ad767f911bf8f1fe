"""Draws graphs, jobs and the cards of cells: as SVG, text, HTML and widgets, from immutable snapshots.

No Spark and no job is known here, and nothing is decided; when something is shown is up to `magics`.

Importing this package is cheap: ipywidgets and anywidget are loaded when `JobView` is first asked for, graphviz when
the first picture is laid out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.lazy_imports import imported_on_use

if TYPE_CHECKING:
    from flinkmagic.display.dot import to_dot
    from flinkmagic.display.execution_views import execution_view, regions_view, states_by_vertex
    from flinkmagic.display.layout_engine import warm_up
    from flinkmagic.display.page import mime_bundle, to_html
    from flinkmagic.display.picture import to_svg
    from flinkmagic.display.snapshot import ErrorView, GraphView, JobSnapshot, TaskView
    from flinkmagic.display.text import longest_line, progress_line, to_table, to_text
    from flinkmagic.display.views import job_view, stream_view
    from flinkmagic.display.widget import JobView

__all__, __getattr__ = imported_on_use(__name__)
