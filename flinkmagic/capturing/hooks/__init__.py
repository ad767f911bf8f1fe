"""Hooks that notice a cell's calls, and run before and after each."""
