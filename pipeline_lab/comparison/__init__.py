"""Runs and races side by side: what differs in what they were told, then what differs in what was measured."""
