"""Files of examples that users bring, read without TensorFlow."""
