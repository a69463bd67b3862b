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


def parse(record: tf.Tensor) -> dict[str, tf.Tensor]:
    """Decode one record into an image and its label."""
    example = tf.io.parse_single_example(record, FEATURES)
    image = decode(example["image"])
    return {"image": image, "label": example["label"], "id": example["id"]}


def rotate(image: tf.Tensor) -> tf.Tensor:
    """Rotate around the centre, by up to MAX_ROTATION either way."""
    size = image.shape[0]
    centre = (size - 1) / 2
    angle = tf.random.uniform([], -MAX_ROTATION, MAX_ROTATION)
    cosine, sine = tf.cos(angle), tf.sin(angle)
    shift_x = centre - centre * (cosine - sine)
    shift_y = centre - centre * (cosine + sine)
    rotated = tf.raw_ops.ImageProjectiveTransformV3(
        images=image[tf.newaxis],
        transforms=tf.stack([cosine, -sine, shift_x, sine, cosine, shift_y, 0.0, 0.0])[tf.newaxis],
        output_shape=[size, size],
        fill_value=0.0,
        interpolation="BILINEAR",
    )
    return rotated[0]


def cut_out(image: tf.Tensor) -> tf.Tensor:
    """Set a square of CUTOUT pixels to zero, at a random place."""
    size = image.shape[0]
    top = tf.random.uniform([], maxval=size - CUTOUT + 1, dtype=tf.int32)
    left = tf.random.uniform([], maxval=size - CUTOUT + 1, dtype=tf.int32)
    row, column = tf.range(size)[:, tf.newaxis], tf.range(size)[tf.newaxis, :]
    hole = (row >= top) & (row < top + CUTOUT) & (column >= left) & (column < left + CUTOUT)
    return tf.where(hole[:, :, tf.newaxis], 0.0, image)


def augment(example: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Change one image at random."""
    image = tf.cast(example["image"], tf.float32)
    image = tf.pad(image, [[PAD, PAD], [PAD, PAD], [0, 0]])
    image = tf.image.random_crop(image, [CROP, CROP, 3])
    image = tf.image.random_flip_left_right(image)
    image = rotate(image)
    image = cut_out(image)
    image = tf.image.per_image_standardization(image)
    return {**example, "image": image}


def make_dataset(files: list[str], cache_dir: str = "cache") -> tf.data.Dataset:
    """Build the input pipeline over TFRecord files; caches on disk, if any, go to cache_dir."""
    dataset = tf.data.TFRecordDataset(files)
    dataset = dataset.shuffle(2048)
    dataset = dataset.repeat()
    dataset = dataset.map(parse)
    dataset = dataset.map(augment)
    dataset = dataset.batch(128, drop_remainder=True)
    options = tf.data.Options()
    # Run the stages just as written: nothing parallelised, fused or prefetched behind our back.
    rewrites = options.experimental_optimization
    rewrites.apply_default_optimizations = False
    rewrites.inject_prefetch = False
    rewrites.map_and_batch_fusion = False
    rewrites.map_parallelization = False
    rewrites.noop_elimination = False
    rewrites.parallel_batch = False
    rewrites.shuffle_and_repeat_fusion = False
    return dataset.with_options(options)
