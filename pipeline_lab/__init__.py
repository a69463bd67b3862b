"""Pipeline Lab: why a TensorFlow job waits for its input, what to change, and whether the change worked."""
