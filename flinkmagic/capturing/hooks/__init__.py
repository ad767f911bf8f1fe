"""Hooks that notice a cell's calls, and run before and after each.

A module holds the hooks of one concern; `hook_table` lists the methods, and `patches` replaces them during a capture.
Hooks do not decide whether a line may run now: `writes.captured_session` does. SQL is judged in `sql`.
"""
