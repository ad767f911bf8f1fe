"""Which cells' results are stale: what each cell has read and defined, and whether that is still so."""
