"""Reads the user's source: where a call is, how it is written, and which handler waits for it to raise."""
