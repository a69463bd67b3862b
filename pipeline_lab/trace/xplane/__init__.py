"""The XSpace format: what TensorFlow and JAX profilers write as ``<host>.xplane.pb``."""
