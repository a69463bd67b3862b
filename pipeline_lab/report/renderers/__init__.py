"""One file per format of a report: each renders the same blocks."""
