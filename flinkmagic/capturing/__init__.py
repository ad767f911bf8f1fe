"""Records what a cell does: its DataFrame calls, its deferred writes, and the source line of each."""
