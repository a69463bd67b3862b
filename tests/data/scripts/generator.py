"""A plain Python generator given to fit."""

import sys
import time
from collections.abc import Iterator

import keras
import numpy as np

BATCHES = int(sys.argv[1])


def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(1)
    while True:
        time.sleep(0.03)
        yield random.normal(size=(16, 64)).astype(np.float32), random.integers(0, 7, 16)


model = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(7)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(batches(), steps_per_epoch=BATCHES, epochs=2, verbose=0)
