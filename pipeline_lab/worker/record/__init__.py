"""What is recorded beside the training: steps, windows, resources and tf.data's model."""
