"""Notes the recipe of every dataset that a user's script makes."""
