"""Slots: requested, declared, granted, shared, and returned."""
