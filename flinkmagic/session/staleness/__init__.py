"""Finds the cells whose results are stale, by what each cell has read and defined.

Cells are recorded as they run by `magics.cell_recorder`, and executed again by `magics.stale_runs`. Whether kept rows
may be used is not decided here, but in `reuse`.
"""
