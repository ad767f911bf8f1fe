"""Loops over DataFrames: supersteps that are compiled and deployed one after the other."""
