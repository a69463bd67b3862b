"""From options to Python source, and advice on it before anything runs. No TensorFlow."""
