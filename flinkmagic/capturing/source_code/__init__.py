"""Reads the user's source: where a call is, how it is written, and which handler waits for it to raise.

It reads the lines of cells. The code of functions that Spark ships is read in `functions`.
"""
