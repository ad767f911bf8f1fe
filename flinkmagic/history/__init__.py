"""Reads what applications have left in their event logs: jobs with graphs, findings and critical paths.

It works on files alone and needs no session. Runs of this session are in `session`; `display` draws both.
"""
