"""What makes a result usable again, and what is kept of it.

A result is known by a key of all that its rows depend on (`result_keys`). What one graph's job takes up of earlier ones
and leaves for later ones is decided in one place (`retention`); what is kept lies in the session's store
(`retained_results`), as rows (`kept_results`), as map outputs of Spark's (`map_outputs`), in the targets of writes
(`finished_writes`), and on disk for another process (`checkpoints`).
"""
