"""Holds the rules of findings, each in a module of its own.

A module has a `RULE`, and `findings.find` applies all of them. No rule asks Spark: `findings.facts` has all that a rule
may know, and what several rules use is in modules of `findings`.
"""
