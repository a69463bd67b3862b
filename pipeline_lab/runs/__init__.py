"""Runs: the folder that holds one, the store that holds all, and the processes that make them. No TensorFlow."""
