"""What Spark says of tasks and executors: events, and the records that are kept of them."""
