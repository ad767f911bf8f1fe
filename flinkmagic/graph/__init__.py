"""Flink's three graphs, in pure Python and numpy.

For a program: transformations are registered with an environment (:mod:`~flinkmagic.graph.environment`), which makes a
StreamGraph of them (:mod:`~flinkmagic.graph.stream_graph_generator`); that becomes a JobGraph
(:mod:`~flinkmagic.graph.job_graph_generator`), by chaining operators (:mod:`~flinkmagic.graph.chaining`); that becomes
an ExecutionGraph (:mod:`~flinkmagic.graph.execution_graph`) with its pipelined regions and slot sharing groups.
:mod:`~flinkmagic.graph.compilation` does all of it, :mod:`~flinkmagic.graph.topology` starts from a JSON file.

Each class mirrors the Flink class of its name; docstrings name the departures.
"""
