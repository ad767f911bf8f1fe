"""How one stage of a job runs at Spark: its thread, its properties, its writes and the metrics that it observes."""
