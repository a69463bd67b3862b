"""Train on JPEG images in TFRecord files, in a loop of your own.

pipeline-lab watch --every 2 --seconds 0.5 examples/image_loop.py  # unchanged; windows by the clock
python examples/image_loop.py --windows                            # two lines more; windows by the step
pipeline-lab analyze RUN                                           # with the id that `pipeline-lab runs list` shows
"""

import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from pipeline_lab.capture import ProfileWindows

FILES, EXAMPLES, BATCH, STEPS = 4, 500, 50, 1500
FEATURES = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}


def write_files(folder: str) -> list[str]:
    """Write noisy images whose label is the place of their bright stripe."""
    random = np.random.default_rng(0)
    paths = [str(Path(folder, f"train-{number}.tfrecord")) for number in range(FILES)]
    for path in paths:
        with tf.io.TFRecordWriter(path) as writer:
            for label in random.integers(0, 8, EXAMPLES):
                pixels = random.integers(0, 60, (32, 32, 3), dtype=np.uint8)
                pixels[label * 4 : label * 4 + 4] += 150
                image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.encode_jpeg(pixels).numpy()]))
                number = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
                features = tf.train.Features(feature={"image": image, "label": number})
                writer.write(tf.train.Example(features=features).SerializeToString())
    return paths


def parse(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decode one image and its label."""
    example = tf.io.parse_single_example(record, FEATURES)
    return tf.ensure_shape(tf.io.decode_jpeg(example["image"], channels=3), (32, 32, 3)), example["label"]


model = keras.Sequential([keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(8)])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))

with tempfile.TemporaryDirectory() as folder:
    dataset = tf.data.TFRecordDataset(write_files(folder)).shuffle(1000).repeat()
    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).take(STEPS).prefetch(2)
    if "--windows" in sys.argv:
        with ProfileWindows(name="image loop") as windows:
            for images, labels in windows.steps(dataset):
                loss = model.train_on_batch(images, labels)
    else:
        for images, labels in dataset:
            loss = model.train_on_batch(images, labels)
    tf.print("loss after", STEPS, "steps:", loss)
