"""Charts of more than one run: comparisons, races, searches."""
