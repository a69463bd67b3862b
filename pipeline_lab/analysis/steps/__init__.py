"""How long the steps took, and what they consist of: recorded ones, all of a job, several hosts, epochs."""
