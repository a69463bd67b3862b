"""Inside the job process: the only room, with `capture`, that imports TensorFlow."""
