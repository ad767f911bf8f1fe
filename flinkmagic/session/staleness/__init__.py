"""Finds the cells whose results are stale, by what each cell has read and defined."""
