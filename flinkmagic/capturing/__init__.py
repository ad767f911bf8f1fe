"""Records what a cell does: its DataFrame calls, its deferred writes, and the source line of each.

A `Recorder` listens while a cell runs (`capture`), and what it has noted is a `Program`. Calls are noticed by `hooks`;
what they read, write and change is judged in `sql`, `writes` and `streams`. Nothing is planned here (`planning`), and
whether a function is pure is judged in `functions`.
"""
