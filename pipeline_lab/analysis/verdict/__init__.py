"""What holds the job back, in one sentence with its evidence, and what else is worth knowing."""
