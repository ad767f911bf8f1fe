"""Reads what a Python function that Spark ships does, and judges whether it is known to be pure.

Nothing of a function is run, and nothing here knows Spark: a function is the bytes of its pickle.
"""
