"""Records what a cell does: its DataFrame calls, its deferred writes, and the source line of each.

A capture results in a `program`. No stage is planned here (`planning`), and no job is deployed here: a
`capture_listener`, which `session` and `magics` implement, runs what a line needs.
"""
