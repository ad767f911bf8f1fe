"""The rules of findings, each in a module of its own.

`session.findings.find` asks all of them; what several rules count is beside it.
"""
