"""The rules of findings, each in a module of its own."""
