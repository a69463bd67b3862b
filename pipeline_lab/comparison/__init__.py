"""Runs and races side by side: what differs in their options, then what differs in what was measured."""
