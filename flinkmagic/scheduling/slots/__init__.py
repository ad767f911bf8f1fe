"""Handles slots: requested, declared, granted, shared, and returned.

Which slots a Spark session offers is found in `deployment.watching.session_slots`.
"""
