"""The tf.data pipeline that ran, read from a trace: its stages, what the job waited for, buffers over time."""
