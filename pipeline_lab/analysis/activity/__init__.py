"""What went on in a trace: its events by name, as intervals on the time axis."""
