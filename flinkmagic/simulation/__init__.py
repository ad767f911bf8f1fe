"""A cluster on virtual time only, behind the same protocols as a real one."""
