"""What XProf says about the same traces, and why its numbers differ."""
