"""Slots: asked for, declared, granted, shared, and given back."""
