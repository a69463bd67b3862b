"""Start runs: queue them, supervise their workers, keep a spare worker warm."""
