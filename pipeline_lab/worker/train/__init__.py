"""Training: how steps are called, and where they run."""
