"""What a cell did: recorded DataFrame calls, deferred writes, and where each stands in the source."""
