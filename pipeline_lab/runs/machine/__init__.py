"""What this machine offers a job, and what of it the job may use."""
