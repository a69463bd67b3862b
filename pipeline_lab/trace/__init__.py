"""Read profiler traces into columns, without TensorFlow."""
