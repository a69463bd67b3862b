"""The numbers that people see: each declared once, with its unit, its basis and how it is read."""
