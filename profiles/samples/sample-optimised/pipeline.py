# Input pipeline assembled with Pipeline Lab; it needs nothing but TensorFlow.
# Elements are batches of {"image", "label", "id"}.

import math

import tensorflow as tf

IMAGE_SIZE = 96
FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
    "id": tf.io.FixedLenFeature([], tf.int64),
}
PAD = 4
CROP = 96
MAX_ROTATION = math.radians(15.0)
CUTOUT = 8


def decode(encoded: tf.Tensor) -> tf.Tensor:
    """Decode one JPEG image, uint8 (IMAGE_SIZE, IMAGE_SIZE, 3)."""
    return tf.ensure_shape(tf.io.decode_jpeg(encoded, channels=3), [IMAGE_SIZE, IMAGE_SIZE, 3])


def parse(records: tf.Tensor) -> dict[str, tf.Tensor]:
    """Decode a batch of records into images and labels."""
    example = tf.io.parse_example(records, FEATURES)
    decoded = tf.TensorSpec([IMAGE_SIZE, IMAGE_SIZE, 3], tf.uint8)
    image = tf.map_fn(decode, example["image"], fn_output_signature=decoded)
    return {"image": image, "label": example["label"], "id": example["id"]}


def random_crop(images: tf.Tensor) -> tf.Tensor:
    """Take CROP × CROP pixels from a random place in each image."""
    count, size = tf.shape(images)[0], images.shape[1]
    top = tf.random.uniform([count, 1], maxval=size - CROP + 1, dtype=tf.int32)
    left = tf.random.uniform([count, 1], maxval=size - CROP + 1, dtype=tf.int32)
    images = tf.gather(images, top + tf.range(CROP), axis=1, batch_dims=1)
    return tf.gather(images, left + tf.range(CROP), axis=2, batch_dims=1)


def random_flip(images: tf.Tensor) -> tf.Tensor:
    """Mirror about half of the images left to right."""
    is_flipped = tf.random.uniform([tf.shape(images)[0], 1, 1, 1]) < 0.5
    return tf.where(is_flipped, tf.reverse(images, axis=[2]), images)


def rotate(images: tf.Tensor) -> tf.Tensor:
    """Rotate each image around its centre, by its own angle of up to MAX_ROTATION either way."""
    size = images.shape[1]
    centre = (size - 1) / 2
    angle = tf.random.uniform([tf.shape(images)[0]], -MAX_ROTATION, MAX_ROTATION)
    cosine, sine, zero = tf.cos(angle), tf.sin(angle), tf.zeros_like(angle)
    shift_x = centre - centre * (cosine - sine)
    shift_y = centre - centre * (cosine + sine)
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.stack([cosine, -sine, shift_x, sine, cosine, shift_y, zero, zero], axis=1),
        output_shape=[size, size],
        fill_value=0.0,
        interpolation="BILINEAR",
    )


def cut_out(images: tf.Tensor) -> tf.Tensor:
    """Set a square of CUTOUT pixels to zero, at a random place in each image."""
    count, size = tf.shape(images)[0], images.shape[1]
    top = tf.random.uniform([count, 1, 1], maxval=size - CUTOUT + 1, dtype=tf.int32)
    left = tf.random.uniform([count, 1, 1], maxval=size - CUTOUT + 1, dtype=tf.int32)
    row, column = tf.range(size)[:, tf.newaxis], tf.range(size)[tf.newaxis, :]
    hole = (row >= top) & (row < top + CUTOUT) & (column >= left) & (column < left + CUTOUT)
    return tf.where(hole[..., tf.newaxis], 0.0, images)


def augment(batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Change each image of a batch at random, on its own."""
    images = tf.cast(batch["image"], tf.float32)
    images = tf.pad(images, [[0, 0], [PAD, PAD], [PAD, PAD], [0, 0]])
    images = random_crop(images)
    images = random_flip(images)
    images = rotate(images)
    images = cut_out(images)
    images = tf.image.per_image_standardization(images)
    return {**batch, "image": images}


def make_dataset(files: list[str], cache_dir: str = "cache") -> tf.data.Dataset:
    """Build the input pipeline over TFRecord files; caches on disk, if any, go to cache_dir."""
    dataset = tf.data.Dataset.from_tensor_slices(files)
    dataset = dataset.shuffle(len(files))  # a new order of files each epoch
    dataset = dataset.interleave(
        tf.data.TFRecordDataset,
        cycle_length=4,
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    dataset = dataset.shuffle(2048)
    dataset = dataset.repeat()
    dataset = dataset.batch(128, drop_remainder=True)
    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)  # whole batches at once
    dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)  # whole batches at once
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    return dataset
