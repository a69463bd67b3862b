"""Which examples the model saw: files, epochs, labels, padding, evaluation passes."""
