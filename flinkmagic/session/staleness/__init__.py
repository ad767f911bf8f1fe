"""Finds the cells whose results are stale, by what each cell has read and defined.

Cells are recorded, and run again, in `magics`; which results are reused is decided in `reuse`.
"""
