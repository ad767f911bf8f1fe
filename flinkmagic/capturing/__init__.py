"""What a cell did: its recorded DataFrame calls, its deferred writes, and the source line of each."""
