"""How an analysis declares itself, and how its tables are stored."""
