"""Runs loops over DataFrames, whose supersteps are compiled and deployed one after the other."""
