"""How the tasks of a Spark stage become the states of a job vertex's subtasks."""
