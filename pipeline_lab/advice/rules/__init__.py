"""Rules that propose changes of a pipeline, each with its evidence."""
