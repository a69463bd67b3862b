"""Pure numbers in, numbers out."""
