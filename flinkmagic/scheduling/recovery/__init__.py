"""What outlives a job manager: its jobs and their journals, who leads, and taking a job up."""
