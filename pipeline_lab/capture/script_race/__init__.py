"""Races changed pipelines inside the training of a script that is run as it is."""
