"""What the process with TensorFlow finds of datasets on numbers: the real order of the same datasets beside it."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.capture.script.noted_datasets import note_new_datasets
from pipeline_lab.worker.recipe.numbered import CannotNumberError, number_dataset

LINES = (5, 3, 4)


def order_by_numbers() -> dict[str, Any]:
    """Return for each dataset what it really gives and what the numbers say, or why they say nothing."""
    note_new_datasets()
    with TemporaryDirectory() as folder:
        return {name: _both(make, Path(folder)) for name, make in DATASETS.items()}


def _both(make: Callable[[list[str]], Any], folder: Path) -> dict[str, Any]:
    paths = []
    for file, count in enumerate(LINES):
        path = folder / f"{file}.txt"
        path.write_text("".join(f"{file} {record}\n" for record in range(count)))
        paths.append(str(path))
    dataset = make(paths)
    try:
        numbered = number_dataset(dataset)
    except CannotNumberError as error:
        return {"why": str(error)}
    real = [_flat(element) for element in dataset]
    return {
        "real": real,
        "numbered": [batch.tolist() for batch in numbered.batches()],
        "files": [(Path(file.path).name, file.records, file.size_bytes) for file in numbered.files],
    }


def _flat(element: Any) -> Any:
    return np.asarray(element).reshape(-1, 2).tolist()


def _parse(line: Any) -> Any:
    return tf.strings.to_number(tf.strings.split(line), tf.int64)


def _parse_all(lines: Any) -> Any:
    return tf.map_fn(_parse, lines, fn_output_signature=tf.int64)


def _read(path: Any) -> Any:
    return tf.data.TextLineDataset(path)


def _read_without_head(path: Any) -> Any:
    return tf.data.TextLineDataset(path).skip(1).map(lambda line: line)


DATA = tf.data.Dataset
DATASETS: dict[str, Callable[[list[str]], Any]] = {
    "one after another": lambda paths: tf.data.TextLineDataset(paths).map(_parse).batch(4).prefetch(1),
    "in turn": lambda paths: DATA.from_tensor_slices(paths)
    .interleave(_read, cycle_length=2, block_length=2)
    .map(_parse)
    .batch(5, drop_remainder=True),
    "shuffled by a seed": lambda paths: tf.data.TextLineDataset(paths).map(_parse).shuffle(4, seed=7).repeat(2).batch(6),
    "part of it": lambda paths: DATA.list_files(str(Path(paths[0]).parent / "*.txt"), shuffle=False)
    .flat_map(_read)
    .shard(2, 1)
    .skip(1)
    .take(3)
    .map(_parse)
    .batch(2),
    "with labels": lambda paths: DATA.zip((tf.data.TextLineDataset(paths).map(_parse), DATA.range(99)))
    .map(lambda pair, _: pair)
    .batch(3),
    "whole batches": lambda paths: tf.data.TextLineDataset(paths).batch(3).map(_parse_all).unbatch().batch(2),
    "no files": lambda _: DATA.range(6).shuffle(3, seed=1).map(lambda number: tf.stack([0 * number, number])).batch(2),
    "without a head": lambda paths: DATA.from_tensor_slices(paths)
    .interleave(_read_without_head, cycle_length=3)
    .map(_parse)
    .map(lambda pair: pair - tf.constant([0, 1], tf.int64))  # records count behind the head
    .batch(4),
    "filtered": lambda paths: tf.data.TextLineDataset(paths).filter(lambda line: line != "").batch(2),
    "by Python": lambda _: DATA.from_generator(lambda: iter(range(3)), tf.int64).batch(2),
}  # fmt: skip
