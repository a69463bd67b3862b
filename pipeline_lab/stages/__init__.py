"""The stages of tf.data, one declaration each."""
