"""When the device had no work, and why."""
