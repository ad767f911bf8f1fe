"""Plans streaming queries as Transformations."""
