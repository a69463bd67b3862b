"""Record ``python_between_steps.xplane.pb``: six small steps with 20 ms of Python after each, data always ready.

Run ``python tests/data/record_python_between_steps.py`` to record it anew (it needs TensorFlow).
"""

import shutil
import tempfile
import time
from pathlib import Path

import tensorflow as tf

STEPS = 6
PAUSE_S = 0.020
TARGET = Path(__file__).with_name("python_between_steps.xplane.pb")


def main() -> None:
    images = tf.random.normal((256, 64))
    dataset = tf.data.Dataset.from_tensor_slices(images).repeat().batch(16, drop_remainder=True).prefetch(4)
    weights = tf.Variable(tf.random.normal((64, 64)))

    @tf.function
    def train(batch: tf.Tensor) -> tf.Tensor:
        for _ in range(20):
            batch = tf.tanh(tf.matmul(batch, weights))
        return tf.reduce_sum(batch)

    batches = iter(dataset)
    train(next(batches))
    with tempfile.TemporaryDirectory() as folder:
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
        tf.profiler.experimental.start(folder, options=options)
        for step in range(10, 10 + STEPS):
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                float(train(next(batches)))
            time.sleep(PAUSE_S)
        tf.profiler.experimental.stop()
        (recorded,) = Path(folder).rglob("*.xplane.pb")
        shutil.copyfile(recorded, TARGET)


if __name__ == "__main__":
    main()
