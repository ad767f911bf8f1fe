"""Hooks that notice a cell's calls, and run before and after each.

`hook_table` lists which calls are noticed, `patches` puts the hooks in place, and `current_capture` finds the capture
that a call belongs to. What a noticed call means for writes that are pending is decided in `capturing.writes`.
"""
