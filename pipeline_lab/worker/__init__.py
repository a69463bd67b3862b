"""Inside the job process. Only this room and `capture` import TensorFlow."""
