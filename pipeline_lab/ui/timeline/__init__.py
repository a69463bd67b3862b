"""The timeline on a run's page: a canvas that asks the app for what its screen can show, and explains what is chosen."""
