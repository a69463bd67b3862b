"""What is put around a script that is recorded: its datasets, its steps, its end."""
