"""Ordinary notebooks, a module each; `Notebook` says what stands in them."""
