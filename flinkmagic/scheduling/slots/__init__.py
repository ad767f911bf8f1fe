"""Handles slots: requested, declared, granted, shared, and returned."""
