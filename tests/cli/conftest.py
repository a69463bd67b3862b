"""Each test has a lab of its own."""
