"""What a job reports: events, failures and its environment."""
