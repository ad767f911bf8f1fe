"""Handles slots: requested, declared, granted, shared, and returned.

Which subtasks share a slot is computed in `graph.slot_sharing`. The executors that offer slots are not here: Spark's
are in `deployment`, virtual ones in `simulation`.
"""
