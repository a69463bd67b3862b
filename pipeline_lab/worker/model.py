"""The network of the images workload: a residual network of eight layers, fixed for every preset.

``conv 16 → 3 stages of one residual block with 16, 32 and 64 channels → global average → dense`` (He et al. 2015,
section 4.2, with n = 1), batch normalisation after each convolution, 1×1 convolutions where the shape changes:
78,042 trainable numbers for ten classes. It takes images of any size and is not scaled with them.
"""

from collections.abc import Sequence
from typing import Any

import keras

STAGE_CHANNELS: Sequence[int] = (16, 32, 64)
KERNEL = 3


def build_network(image_size: int, classes: int) -> Any:
    """Build the network; its output are logits, shape (batch, classes).

    Args:
        image_size: Height and width of the images as they leave the pipeline, pixels.
        classes: Number of labels.
    """
    images = keras.Input((image_size, image_size, 3))
    features = _convolve(images, STAGE_CHANNELS[0], strides=1)
    for stage, channels in enumerate(STAGE_CHANNELS):
        features = _residual_block(features, channels, strides=1 if stage == 0 else 2)
    features = keras.layers.GlobalAveragePooling2D()(features)
    logits = keras.layers.Dense(classes, dtype="float32")(features)
    return keras.Model(images, logits)


def _residual_block(features: Any, channels: int, strides: int) -> Any:
    inner = _convolve(features, channels, strides)
    inner = keras.layers.Conv2D(channels, KERNEL, padding="same", use_bias=False)(inner)
    inner = keras.layers.BatchNormalization()(inner)
    if strides > 1:
        features = keras.layers.Conv2D(channels, 1, strides=strides, use_bias=False)(features)
        features = keras.layers.BatchNormalization()(features)
    return keras.layers.ReLU()(keras.layers.Add()([inner, features]))


def _convolve(features: Any, channels: int, strides: int) -> Any:
    features = keras.layers.Conv2D(channels, KERNEL, strides=strides, padding="same", use_bias=False)(features)
    return keras.layers.ReLU()(keras.layers.BatchNormalization()(features))
