"""The user's source: where a call stands in it, how it is written there, and what waits for it to raise."""
