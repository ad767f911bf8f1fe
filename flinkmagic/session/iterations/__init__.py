"""Runs loops over DataFrames, whose supersteps are compiled and deployed one after the other.

The feedback edges of Flink's iterations are not made here, but in `graph`. A loop's output in a notebook is shown by
`magics.loops`; `session.known_loops` draws it in the graphs that
read its result.
"""
