"""The makers of the notebooks' data, a module a group of tables; each has `make(folder)` and is deterministic."""
