"""Predictions and suggestions for scripts."""
