"""A change on one line, as the call is and as it would be."""

import pytest

from pipeline_lab.pipeline.change_words import before_after
from pipeline_lab.pipeline.changes import (
    AUTOTUNE,
    Change,
    Edit,
    Effect,
    Insert,
    MoveBefore,
    Rename,
    Risk,
    SetArgument,
    SetTraining,
)
from pipeline_lab.pipeline.recipe import DatasetCall, Recipe

CALLS = (
    DatasetCall(1, "map", text=".map(load)"),
    DatasetCall(2, "map", text=".map(lambda x: f(x, 1), num_parallel_calls=min(2, n), deterministic=True)"),
    DatasetCall(3, "map", text=".map(lambda i: tf.numpy_function(fetch, [i], tf.float32), n…"),
    DatasetCall(4, "flat_map", text=".flat_map(TFRecordDataset)"),
    DatasetCall(5, "batch", text=".batch(16)"),
    DatasetCall(6, "cache", text=".cache()"),
)


@pytest.mark.parametrize(
    ("call", "edit", "before", "after"),
    [
        (
            1,
            SetArgument(1, "num_parallel_calls", AUTOTUNE),
            ".map(load)",
            ".map(load, num_parallel_calls=tf.data.AUTOTUNE)",
        ),
        (
            2,
            SetArgument(2, "num_parallel_calls", 8),
            CALLS[1].text,
            ".map(lambda x: f(x, 1), num_parallel_calls=8, deterministic=True)",
        ),
        (2, SetArgument(2, "deterministic", False), CALLS[1].text, CALLS[1].text.replace("True", "False")),
        (
            3,
            SetArgument(3, "num_parallel_calls", 16),
            CALLS[2].text,
            ".map(lambda i: tf.numpy_function(fetch, [i], tf.float32), …, num_parallel_calls=16)",
        ),
        (4, Rename(4, "interleave"), ".flat_map(TFRecordDataset)", ".interleave(TFRecordDataset)"),
        (5, Insert(5, "prefetch", {"buffer_size": AUTOTUNE}), ".batch(16)", ".batch(16).prefetch(tf.data.AUTOTUNE)"),
        (5, Insert(5, "cache"), ".batch(16)", ".batch(16).cache()"),
        (5, MoveBefore(5, 1), ".map(load).batch(16)", ".batch(16).map(load)"),
        (6, SetArgument(6, "filename", "a"), ".cache()", ".cache(filename='a')"),
        (None, SetTraining("workers", 4), "", "workers=4"),
    ],
)
def test_a_call_is_written_as_its_author_would(call: int | None, edit: Edit, before: str, after: str):
    change = Change("some", call, (edit,), Effect.NOTHING, Risk.LOW, "Do it.")
    assert before_after(Recipe(CALLS), change) == (before, after)
