"""Scripts whose pipelines are easily changed for the worse, each with what must not be done to it unasked."""

HEAD = "import tensorflow as tf\n\n"
LOOP = "\nfor epoch in range(2):\n    for batch in ds:\n        pass\n"

CROP = HEAD + """
def crop(number):
    return number + tf.random.uniform([], 0, 100, tf.int64)


ds = tf.data.Dataset.range(64).map(lambda number: number * 3)
ds = ds.map(crop)
ds = ds.batch(8)
""" + LOOP  # fmt: skip

READ_AND_CROP = HEAD + """
def load(number):
    row = tf.repeat(tf.math.square(number), 20) + tf.range(20, dtype=tf.int64)
    start = tf.random.uniform([], 0, 10, tf.int32)
    if start > 5:
        start -= 5
    return number, row[start : start + 4]


ds = tf.data.Dataset.range(64)
ds = ds.shuffle(64).map(load).batch(8)
""" + LOOP  # fmt: skip

SHUFFLED_BATCHES = HEAD + """
ds = tf.data.Dataset.range(64).batch(8).shuffle(4, seed=3)
""" + LOOP  # fmt: skip

STATEFUL_FILTER = HEAD + """
seen = tf.Variable(0, dtype=tf.int64)
ds = (
    tf.data.Dataset.range(63)
    .map(lambda number: number * 3)
    .filter(lambda number: seen.assign_add(1) % 2 == 0)  # every other one
    .batch(4)
)
""" + LOOP  # fmt: skip

GENERATOR = HEAD + """
made = []


def numbers():
    for _ in range(32):
        made.append(1)
        yield len(made)


ds = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int32))
ds = ds.map(lambda number: number * 2)
ds = ds.batch(4)
""" + LOOP  # fmt: skip

ROWS = HEAD + """
def rows():
    for number in range(150):
        yield number, [number / 2, 1.0]


signature = (tf.TensorSpec([], tf.int32), tf.TensorSpec([2], tf.float32))
ds = tf.data.Dataset.from_generator(rows, output_signature=signature).batch(8)
""" + LOOP  # fmt: skip

SHARED_GENERATOR = HEAD + """
numbers = iter(range(1_000))  # each epoch goes on where the last one ended


def following():
    yield from numbers


ds = tf.data.Dataset.from_generator(following, output_signature=tf.TensorSpec([], tf.int64)).take(32).batch(4)
""" + LOOP  # fmt: skip

SEEDED = HEAD + """
tf.random.set_seed(7)


def noisy(number):
    return tf.cast(number, tf.float32) + tf.random.uniform([])


ds = tf.data.Dataset.range(64).map(noisy).shuffle(16, seed=5).batch(8)
""" + LOOP  # fmt: skip

READ_TWICE = HEAD + """
ds = tf.data.Dataset.range(64).map(lambda number: number * 3).shuffle(64)
for number in ds.take(2):
    print(number)
ds = ds.batch(8)
""" + LOOP  # fmt: skip

ONE_BY_ONE = HEAD + """
def scale(number):
    number = tf.cast(number, tf.float32)
    return number / tf.reduce_sum(number * number + 1.0)


ds = tf.data.Dataset.range(64).map(scale).batch(8)  # a sum over whole batches is another one
""" + LOOP  # fmt: skip

SLIP = (
    HEAD
    + """
ds = (
    tf.data.Dataset.range(64)
    .map(lambda number: number * 3)
    .repeat()
    .cache()
    .batch(8)
)
for step, batch in zip(range(40), ds):
    pass
"""
)

BRANCHES = HEAD + """
def branch(number):
    if number > 30:  # AutoGraph reads this line from the source
        number = number * 2
    return number


ds = tf.data.Dataset.range(64).map(branch).batch(8)
""" + LOOP  # fmt: skip

FILES = HEAD + """
ds = tf.data.Dataset.range(7).interleave(lambda file: tf.data.Dataset.range(5).map(lambda line: file * 10 + line), 3)
ds = ds.batch(4)
""" + LOOP  # fmt: skip

HELPER = HEAD + """
def load(count, function):
    return tf.data.Dataset.range(count).shuffle(16).map(function).batch(8)  # one line, two datasets


ds = load(64, lambda number: number * 3)
held_out = load(32, lambda number: number - tf.reduce_sum(number))
again = ds.take(2)  # reads on where the shuffle draws
""" + LOOP  # fmt: skip

MIXED_TO_TRAIN = HEAD + """
def load(count, function, mixed):
    ds = tf.data.Dataset.range(count)
    if mixed:
        ds = ds.shuffle(16)
    return ds.map(function).batch(8)


held_out = load(32, lambda number: number * 2, False)
ds = load(64, lambda number: number * 3, True)
""" + LOOP + "for batch in held_out:\n    pass\n"  # fmt: skip

WAITS = HEAD + """
import time


def read(number):
    time.sleep(0.002)
    return number * 3


def load(number):
    return tf.numpy_function(read, [number], tf.int64)


ds = tf.data.Dataset.range(64).map(load).batch(8)
""" + LOOP  # fmt: skip

COUNTS = HEAD + """
import itertools

calls = itertools.count(1)  # calls at once get different numbers, so that only their order changes


def count(number):
    return number * 0 + next(calls)


ds = tf.data.Dataset.range(64).map(lambda number: tf.numpy_function(count, [number], tf.int64)).batch(8)
""" + LOOP  # fmt: skip

JITTER = HEAD + """
import random


def jitter(number):
    return number * 10 + random.choice([1, 2, 3])


ds = tf.data.Dataset.range(64).map(lambda number: tf.numpy_function(jitter, [number], tf.int64)).batch(8)
""" + LOOP  # fmt: skip

FITTED = HEAD + """
import keras


ds = tf.data.Dataset.range(48).shuffle(48).map(lambda number: (tf.cast([number], tf.float32), number % 2)).batch(8)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ds, epochs=2, verbose=0)
"""  # fmt: skip

CROPS = """
import keras
import numpy as np


class Crops(keras.utils.PyDataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return np.random.uniform(size=(4, 1)) + index, np.zeros(4)


crops = Crops()
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(crops, epochs=2, verbose=0)
"""

CROPS_OF_KERAS_2 = CROPS.replace("import keras\n", "import tf_keras as keras\n").replace("PyDataset", "Sequence")

FLIPPED = """
import keras
import numpy as np
from tensorflow.keras.preprocessing.image import ImageDataGenerator

x = np.arange(24 * 8 * 8 * 3).reshape(24, 8, 8, 3) / 4608
flipped = ImageDataGenerator(horizontal_flip=True, channel_shift_range=0.2).flow(x, np.zeros(24), batch_size=4)
model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(flipped, steps_per_epoch=np.int64(len(x) // 4), epochs=2, verbose=0)
"""

CURRICULUM = """
import keras
import numpy as np
import tensorflow as tf


class Reader:
    blur = 4

    def __call__(self):
        for number in range(32):
            yield np.full((4,), number / self.blur), np.zeros(1)


class Cool(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        reader.blur = 4 - epoch


reader = Reader()
ds = tf.data.Dataset.from_generator(reader, output_types=(tf.float32, tf.float32), output_shapes=((4,), (1,)))
ds = ds.batch(8)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ds, epochs=3, verbose=0, callbacks=[Cool()])
"""

FILLED_ONCE = HEAD + """
from pathlib import Path

kept = Path(__file__).with_name("kept")
held_out = tf.data.Dataset.range(6).batch(3)
ds = tf.data.Dataset.range(64).map(lambda number: number * 3).cache(str(kept))
if not kept.with_name("kept.index").exists():
    for number in ds:
        pass
ds = ds.map(lambda number: number + 1).batch(8)
""" + LOOP + "for batch in held_out:\n    pass\n"  # fmt: skip

ZIPPED = HEAD + """
def make(function):
    return tf.data.Dataset.range(64).map(function)  # one line, two datasets


ds = tf.data.Dataset.zip((make(lambda number: number * 3), make(lambda number: number + 1)))
ds = ds.repeat().batch(8).take(16)
""" + LOOP  # fmt: skip

READ_BY_FUNCTION = HEAD + """
from pathlib import Path


def read(data):
    for element in data:
        pass


done = Path(__file__).with_name("done")
ds = tf.data.Dataset.range(64).map(lambda number: number * 3)
if not done.exists():
    read(ds)
for epoch in range(3):
    read(ds.batch(8))
read(ds.batch(16))
done.touch()
"""  # fmt: skip

SHARED_FUNCTIONS = HEAD + """
def make(count, training):
    data = tf.data.Dataset.range(count)
    if training:
        data = data.map(lambda number: number + tf.random.uniform([], 0, 100, tf.int64))
    return data.map(lambda number: number * 3).batch(8)


def run_epoch(data):
    for batch in data:
        pass


valid = make(16, False)
run_epoch(valid)
for epoch in range(4):
    run_epoch(make(64, True))
run_epoch(valid)
"""  # fmt: skip

INSIDE_FUNCTION = HEAD + """
def make():
    return tf.data.Dataset.range(64).map(lambda number: number * 3).batch(8)


ds = make()


@tf.function
def train():
    total = tf.constant(0, tf.int64)
    for batch in ds:
        if total > 10**6:
            break
        total += tf.reduce_sum(batch)
    return total


for epoch in range(2):
    train()
"""  # fmt: skip

ENDS_FOR_GOOD = HEAD + """
from pathlib import Path

done = Path(__file__).with_name("done")
ds = tf.data.Dataset.range(64).map(lambda number: number * 3).batch(8)
for epoch in range(2):
    for batch in ds.take(TAKEN):
        pass
done.touch()
"""  # fmt: skip

SHUFFLED_NAMES = HEAD + """
def decode(number):
    return tf.cast(number, tf.float32) / 3.0


ds = tf.data.Dataset.range(64).shuffle(64)
ds = ds.map(decode).batch(8)
""" + LOOP  # fmt: skip

COLUMNS = HEAD + """
@tf.function
def parse(line):
    columns = tf.io.decode_csv(line, [0.0] * 4)
    return tf.stack(columns[:-1]) / 3.0, tf.stack(columns[-1:])


lines = [f"{n}.5,{n * n},{n % 7},{n % 2}" for n in range(64)]
ds = tf.data.Dataset.from_tensor_slices(lines).shuffle(16).map(parse)
ds = ds.batch(8)
print(parse("1,2,3,4"))
""" + LOOP  # fmt: skip

PASSES = """
import tensorflow as tf

ds = tf.data.Dataset.range(48).shuffle(16, seed=3).map(lambda number: (number, number % 2)).batch(8)
weight = tf.Variable(1.0)


def train(data, epochs):
    for epoch in range(epochs):
        for step, (x, y) in enumerate(data):
            with tf.GradientTape() as tape:
                loss = weight * tf.cast(tf.reduce_sum(x * y), tf.float32)
            weight.assign_sub(1e-6 * tape.gradient(loss, weight))
        print(epoch, step)


train(ds, epochs=3)
"""
"""A loop of the script's own, over epochs of a dataset that its function is given."""

SCRIPTS = {
    "passes": PASSES,
    "columns": COLUMNS,
    "shuffled-names": SHUFFLED_NAMES,
    "waits": WAITS,
    "counts": COUNTS,
    "crops": CROPS,
    "crops-of-keras-2": CROPS_OF_KERAS_2,
    "flipped": FLIPPED,
    "curriculum": CURRICULUM,
    "fitted": FITTED,
    "jitter": JITTER,
    "helper": HELPER,
    "mixed-to-train": MIXED_TO_TRAIN,
    "files": FILES,
    "crop": CROP,
    "read-and-crop": READ_AND_CROP,
    "shuffled-batches": SHUFFLED_BATCHES,
    "stateful-filter": STATEFUL_FILTER,
    "generator": GENERATOR,
    "rows": ROWS,
    "shared-generator": SHARED_GENERATOR,
    "seeded": SEEDED,
    "read-twice": READ_TWICE,
    "one-by-one": ONE_BY_ONE,
    "slip": SLIP,
    "branches": BRANCHES,
    "zipped": ZIPPED,
    "shared-functions": SHARED_FUNCTIONS,
    "filled-once": FILLED_ONCE,
    "read-by-function": READ_BY_FUNCTION,
    "inside-function": INSIDE_FUNCTION,
    "takes-nothing-again": ENDS_FOR_GOOD.replace("TAKEN", "0 if done.exists() else 8"),
    "never-begins-again": ENDS_FOR_GOOD.replace("range(2)", "range(0 if done.exists() else 2)").replace("TAKEN", "8"),
}
