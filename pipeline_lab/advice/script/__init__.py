"""Predictions and suggestions for a user's own script, from its recipe and what was measured of it."""
