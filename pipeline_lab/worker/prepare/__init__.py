"""Before a job trains: its device, its pipeline and the user's module."""
