"""A script's ways to make a dataset, each with the calls that its recipe has to hold, the consumer first."""

import csv
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

Data = tf.data.Dataset
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="made-datasets-"))
MADE: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {}
"""Function and expected methods, by name."""


def made(*methods: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def add(function: Callable[[], Any]) -> Callable[[], Any]:
        MADE[function.__name__] = (function, methods)
        return function

    return add


def numbers() -> Any:
    return Data.range(8)


def add_one(number: Any) -> Any:
    return number + 1


def simple(method: str, *arguments: Any, inner: tuple[str, ...] = (), **options: Any) -> None:
    """Add a method that needs nothing but numbers; what its function makes comes last."""

    def function() -> Any:
        return getattr(numbers(), method)(*arguments, **options)

    function.__name__ = f"simple_{method}"
    made(method, "range", *inner)(function)


simple("batch", 2)
simple("cache")
simple("enumerate")
simple("filter", lambda number: number > 2)
simple("flat_map", lambda number: Data.from_tensors(number), inner=("from_tensors",))
simple(
    "group_by_window",
    key_func=lambda _: tf.constant(0, tf.int64),
    reduce_func=lambda _, w: w.batch(2),
    window_size=2,
    inner=("batch",),
)
simple("ignore_errors")
simple("map", add_one, num_parallel_calls=2)
simple("padded_batch", 2, padded_shapes=[])
simple("prefetch", 1)
simple("ragged_batch", 2)
simple("repeat", 2)
simple("shard", 2, 0)
simple("shuffle", 4, seed=1)
simple("skip", 1)
simple("snapshot", str(FOLDER / "snapshot"), inner=("interleave",))
simple("take", 3)
simple("take_while", lambda number: number < 5)
simple("unique")
simple("window", 2)
simple("scan", np.int64(0), lambda state, number: (state + number, state))
simple("with_options", tf.data.Options())


@made("interleave", "range", "from_tensors")
def interleaved() -> Any:
    return numbers().interleave(lambda n: Data.from_tensors(n), cycle_length=2, num_parallel_calls=2)


@made("rebatch", "batch", "range")
def rebatched() -> Any:
    return numbers().batch(4).rebatch(2)


@made("unbatch", "batch", "range")
def unbatched() -> Any:
    return numbers().batch(4).unbatch()


@made("sparse_batch", "map", "range")
def sparse() -> Any:
    return numbers().map(lambda n: tf.fill([2], n)).sparse_batch(2, [2])


@made("bucket_by_sequence_length", "map", "range", "padded_batch")
def buckets() -> Any:
    rows = numbers().map(lambda n: tf.fill([n % 3 + 1], n))
    return rows.bucket_by_sequence_length(lambda row: tf.size(row), [2], [2, 2])


@made("rejection_resample", "range")
def resampled() -> Any:
    return numbers().rejection_resample(lambda n: tf.cast(n % 2, tf.int32), [0.5, 0.5], [0.5, 0.5])


@made("concatenate", "range", "range")
def concatenated() -> Any:
    return numbers().concatenate(numbers())


@made("zip", "range", "map", "range")
def zipped() -> Any:
    return Data.zip((numbers(), numbers().map(add_one)))


@made("sample_from_datasets", "range", "range")
def sampled() -> Any:
    return Data.sample_from_datasets([numbers(), numbers()], seed=1)


@made("choose_from_datasets", "range", "range", "take", "repeat", "range")
def chosen() -> Any:
    return Data.choose_from_datasets([numbers(), numbers()], Data.range(2).repeat().take(4))


@made("batch", "map", "range")
def applied() -> Any:
    def helper(dataset: Any) -> Any:
        return dataset.map(add_one)

    return numbers().apply(helper).batch(2)


@made("AssertCardinalityDataset", "range")
def experimental() -> Any:
    return numbers().apply(tf.data.experimental.assert_cardinality(8))


@made("from_tensor_slices")
def slices() -> Any:
    return Data.from_tensor_slices({"x": np.zeros((4, 2), np.float32), "y": [1, 2, 3, 4]})


@made("from_tensors")
def tensors() -> Any:
    return Data.from_tensors(tf.zeros([3]))


@made("counter")
def counted() -> Any:
    return Data.counter()


@made("random")
def random() -> Any:
    return Data.random(seed=1)


@made("list_files")
def listed() -> Any:
    (FOLDER / "one.txt").write_text("1\n2\n")
    return Data.list_files(str(FOLDER / "*.txt"))


def count_up() -> Iterator[int]:
    yield from range(4)


@made("from_generator")
def generated() -> Any:
    return Data.from_generator(count_up, output_signature=tf.TensorSpec([], tf.int64))


@made("load", "interleave")
def loaded() -> Any:
    numbers().save(str(FOLDER / "saved"))
    return Data.load(str(FOLDER / "saved"))


@made("TFRecordDataset")
def records() -> Any:
    with tf.io.TFRecordWriter(str(FOLDER / "a.tfrecord")) as writer:
        writer.write(b"one")
    return tf.data.TFRecordDataset([str(FOLDER / "a.tfrecord")], num_parallel_reads=2)


@made("TextLineDataset", "from_tensor_slices")
def lines() -> Any:
    (FOLDER / "one.txt").write_text("1\n2\n")
    return tf.data.TextLineDataset(Data.from_tensor_slices([str(FOLDER / "one.txt")]))


@made("FixedLengthRecordDataset")
def fixed() -> Any:
    (FOLDER / "fixed").write_bytes(b"abcd")
    return tf.data.FixedLengthRecordDataset(str(FOLDER / "fixed"), 2)


@made("CsvDataset")
def rows() -> Any:
    (FOLDER / "rows.csv").write_text("1,2\n3,4\n")
    return tf.data.experimental.CsvDataset(str(FOLDER / "rows.csv"), [tf.int32, tf.int32])


@made("interleave", "from_tensor_slices", "TFRecordDataset")
def files() -> Any:
    records()
    return Data.from_tensor_slices([str(FOLDER / "a.tfrecord")]).interleave(tf.data.TFRecordDataset)


def read_file(path: Any) -> Any:
    dataset = tf.data.TFRecordDataset(path)
    return dataset.map(lambda record: tf.strings.length(record))


@made("interleave", "from_tensor_slices", "map", "TFRecordDataset")
def files_of_a_function() -> Any:
    records()
    return Data.from_tensor_slices([str(FOLDER / "a.tfrecord")]).interleave(read_file)


@made("*make_csv_dataset")
def csv_files() -> Any:
    with (FOLDER / "head.csv").open("w") as file:
        csv.writer(file).writerows([["x", "y"], [1, 2], [3, 4]])
    return tf.data.experimental.make_csv_dataset(str(FOLDER / "head.csv"), 2, label_name="y", num_epochs=1)


@made("*image_dataset_from_directory")
def images() -> Any:
    for label in ("a", "b"):
        (FOLDER / "images" / label).mkdir(parents=True, exist_ok=True)
        keras.utils.save_img(FOLDER / "images" / label / "0.png", np.zeros((8, 8, 3)))
    return keras.utils.image_dataset_from_directory(FOLDER / "images", image_size=(8, 8), verbose=False)


@made("*text_dataset_from_directory")
def texts() -> Any:
    for label in ("a", "b"):
        (FOLDER / "texts" / label).mkdir(parents=True, exist_ok=True)
        (FOLDER / "texts" / label / "0.txt").write_text(label)
    return keras.utils.text_dataset_from_directory(FOLDER / "texts", verbose=False)


@made("*timeseries_dataset_from_array")
def series() -> Any:
    return keras.utils.timeseries_dataset_from_array(np.arange(10.0), None, 3)


@made("*experimental_distribute_dataset")
def distributed() -> Any:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return strategy.experimental_distribute_dataset(numbers().batch(2))


@made("map", "range")
def in_version_1() -> Any:
    return tf.compat.v1.data.Dataset.range(4).map(add_one)


class Doubled(tf.data.TFRecordDataset):
    """A class of the user's."""


@made("map", "TFRecordDataset")
def subclass() -> Any:
    records()
    return Doubled([str(FOLDER / "a.tfrecord")]).map(lambda record: record)


class Images(keras.utils.PyDataset):
    """Two batches of the user's."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, _number: int) -> tuple[Any, Any]:
        return np.ones((2, 3)), np.ones((2, 1))


def batches() -> Iterator[tuple[Any, Any]]:
    for number in range(2):
        yield Images()[number]


def scale(number: Any) -> Any:
    return number * 2


def through_python(number: Any) -> Any:
    return tf.numpy_function(scale, [number], tf.int64)


def scaling(factor: int) -> Callable[[Any], Any]:
    def times(number: Any) -> Any:
        return number * factor

    return times


def through_made_python(number: Any) -> Any:
    return tf.numpy_function(scaling(2), [number], tf.int64)


@tf.function
def add_up(dataset: Any) -> Any:
    total = tf.constant(0, tf.int64)
    for number in dataset:
        total += number
    return total


def read_in_all_ways() -> None:
    """Read datasets as scripts do."""
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((8, 3)), np.ones((8, 1))
    model.fit(x, y, batch_size=2, verbose=0, validation_data=(x, y))
    model.fit(Images(), verbose=0)
    model.fit(batches(), verbose=0)
    model.predict(x, verbose=0)
    keras.layers.Normalization().adapt(Data.from_tensors(x))
    for _number in numbers().map(lambda number: through_python(number)):
        pass
    for _number in numbers().map(through_made_python):
        pass
    add_up(numbers().skip(1))


class Growing(Images):
    """One batch more in each epoch."""

    batches = 2

    def __len__(self) -> int:
        return self.batches

    def on_epoch_end(self) -> None:
        self.batches += 1


class Endless(Images):
    @property
    def num_batches(self) -> None:
        return None


def fit_in_epochs() -> dict[str, Callable[[], Any]]:
    """Return trainings by how their epochs end."""
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        divided = _model()
    model, whole = _model(), Images()
    return {
        "all": lambda: model.fit(whole, epochs=2, verbose=0),
        "as many": lambda: model.fit(whole, epochs=2, steps_per_epoch=np.int64(2), verbose=0),
        "fewer": lambda: model.fit(whole, None, None, 2, 0, None, 0.0, None, True, None, None, 0, 1),
        "more": lambda: model.fit(whole, epochs=2, steps_per_epoch=3, verbose=0),
        "fewer in validation": lambda: model.fit(whole, verbose=0, validation_data=whole, validation_steps=1),
        "growing": lambda: model.fit(Growing(), epochs=2, steps_per_epoch=2, verbose=0),
        "endless": lambda: model.fit(Endless(), epochs=2, steps_per_epoch=2, verbose=0),
        "under a strategy": lambda: divided.fit(whole, epochs=2, verbose=0),
        "a dataset": lambda: model.fit(numbers().map(lambda _: (tf.ones((2, 3)), tf.ones((2, 1)))), verbose=0),
    }


def _model() -> Any:
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model
