"""Flink's job manager inside a Jupyter notebook, deployed on the session's own Spark.

`%load_ext flinkmagic` loads the magics. The same without a notebook:

>>> with flinkmagic.capture(spark) as program:
...     spark.range(10).write.parquet("out")
>>> graph = flinkmagic.compile(program, name="numbers")
>>> job = graph.run()

Names are imported on first use, so that the parts that do not know Spark can be used without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.lazy_imports import imported_on_use

if TYPE_CHECKING:
    from flinkmagic.capturing.splits import Split, side_output, split
    from flinkmagic.graph.transformations import OutputTag
    from flinkmagic.local_spark import local_session
    from flinkmagic.magics import load_ipython_extension
    from flinkmagic.session import CompiledGraph, Job, capture, compile, with_options
    from flinkmagic.session.iterations.iterate import co_iterate, iterate, iterations

__version__ = "0.1.0"

__all__, __getattr__ = imported_on_use(__name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
