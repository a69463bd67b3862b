"""What the user chooses, as validated data: JSON in, JSON out, no TensorFlow."""
