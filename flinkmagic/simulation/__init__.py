"""Runs jobs on a cluster that exists on virtual time only, behind the same protocols as a real one.

Faults, costs and what-if questions live here. The scheduler that it drives is the one of `scheduling`, unchanged.
"""
