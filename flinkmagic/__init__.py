"""Flink's job manager inside a Jupyter notebook, deployed on the session's own Spark."""

__version__ = "0.1.0"
