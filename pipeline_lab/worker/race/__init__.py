"""Races: arms that run in blocks, in random order."""
