"""What outlives a job manager: its jobs and their journals, who leads, and how a job is taken up."""
