"""The search for a better pipeline: the model proposes, races decide, everything is written down."""
