"""Record the capture that the reader's tests are held against: `python record_small_pipeline.py FOLDER`."""

import sys
import tempfile
from pathlib import Path

import tensorflow as tf

STEPS, WIDTH = 6, 8


def write_records(folder: Path) -> list[str]:
    paths = []
    for part, count in enumerate((20, 30)):
        path = str(folder / f"part-{part}.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for value in range(count):
                writer.write(tf.io.serialize_tensor(tf.fill([WIDTH], float(value))).numpy())
        paths.append(path)
    return paths


def parse(record: tf.Tensor) -> tf.Tensor:
    return tf.ensure_shape(tf.io.parse_tensor(record, tf.float32), [WIDTH])


def main(log_folder: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = tf.data.TFRecordDataset(write_records(Path(folder))).map(parse, num_parallel_calls=2)
        batches = iter(dataset.shuffle(10).repeat().batch(4).prefetch(2))
        weights = tf.Variable(tf.zeros([WIDTH, 1]))

        @tf.function
        def step(batch: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(batch, weights) - 1.0))
            weights.assign_sub(1e-3 * tape.gradient(loss, weights))
            return loss

        step(next(batches))
        with tf.profiler.experimental.Profile(log_folder):
            for number in range(STEPS):
                with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                    step(next(batches))


main(sys.argv[1])
