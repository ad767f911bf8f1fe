"""Hooks: how a cell's calls are noticed, and what runs before and after each."""
