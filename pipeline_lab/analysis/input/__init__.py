"""How long the job waited for its input, and what is known of the stages that make it."""
