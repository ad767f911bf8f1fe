"""Hooks: how the calls of a cell are heard, and what is done before and after each."""
