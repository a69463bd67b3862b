"""What to change and what it would bring: predictions from one measured run, suggestions with their evidence."""
