"""Decides which results can be reused, and keeps them.

A result is identified by a key of all that its rows depend on (`result_keys`), its functions' code included
(`code_fingerprint`; the package `functions` reads code and modules, for capturing too). One place decides what a
graph's job reuses of earlier ones and leaves for later ones (`retention`); which rows an action keeps is decided where
actions are run (`session.actions`). What is kept is in the session's store (`retained_results`), as rows (`job_rows`),
as Spark's map outputs (`map_outputs`), in the targets of writes (`finished_writes`), and on disk for another process
(`checkpoints`, `durable_store`).

Plans are not made here, but in `planning`; jobs are deployed by `deployment`.
"""
