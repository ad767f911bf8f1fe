"""Runs a session's actions (`show()`, `count()`, `toPandas()` and the like) under Flink's scheduler.

What an action keeps for later ones is decided here: the rows of DataFrames (`kept_frames`), columns of text files
(`text_reads`), its answer (`asked_answers`).
"""
