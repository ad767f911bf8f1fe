"""Runs loops over DataFrames, whose supersteps are compiled and deployed one after the other.

A superstep is a graph as any other (`compiled_graph`). `known_loops` draws a loop in the graphs that read its result.
"""
