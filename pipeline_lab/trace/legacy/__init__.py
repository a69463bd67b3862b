"""What older TensorFlow wrote: ``local.trace`` of 1.14 to 2.1, and the step tables that 2.2 to 2.8 derived."""
