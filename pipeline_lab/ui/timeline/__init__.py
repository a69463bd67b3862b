"""The timeline on a run's page: a canvas that fetches what fits its screen, and explains what is chosen."""
