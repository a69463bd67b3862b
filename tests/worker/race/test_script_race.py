"""Races inside scripts that are run as they are."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow

FIT = """
    import keras
    import tensorflow as tf

    traces = []

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = keras.layers.Dense(1)

        def call(self, x):
            traces.append(1)
            return self.layer(x)

    numbers = tf.data.Dataset.range(40)
    dataset = (
        numbers.map(lambda n: (tf.fill([3], tf.cast(n, tf.float32)), 0.0))
        .batch(4)
    )
    model = Model()
    model.build((None, 3))
    model.compile("sgd", "mse", steps_per_execution=2)
    traced = []  # how often, by the end of each call
    count = keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_, **__: traced.append(len(traces)))
    model.fit(dataset, epochs=100000, verbose=0, callbacks=[count])
"""

LOOP = """
    import tensorflow as tf

    batches = []
    weight = tf.Variable(1.0)
    dataset = (
        tf.data.Dataset.range(6)
        .map(lambda n: n)
        .batch(2)
        .prefetch(tf.data.AUTOTUNE)
    )

    def step(batch):
        with tf.GradientTape() as tape:
            loss = weight * tf.reduce_mean(tf.cast(batch, tf.float32))
        tape.gradient(loss, weight)

    for epoch in range(100000):
        for batch in dataset:
            step(batch)
            batches.append(batch[0])
"""
SHORT = {"pairs": 6, "block_steps": 2, "max_extra_load_percent": 100.0, "alpha": 0.5}


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_pipelines_take_turns_inside_fit_without_tracing_it_again(
    ask_tensorflow: Callable[..., Any], package: str
) -> None:
    found = ask_tensorflow(
        "tests.worker.race.script_race_tasks:race_script",
        text=FIT.replace("import keras\n", f"import {package} as keras\n"),
        changes=["train.py:18 num_parallel_calls=1; prefetch"],
        **SHORT,
    )
    assert found["failure"] is None
    assert not found["ended_by_itself"], "the training is over with the race"
    assert found["state"] == "running"
    assert found["looks"] == found["rounds"] > 0
    assert {(arm, steps) for _, arm, steps in found["blocks"]} == {(0, 2), (1, 2)}
    assert len(found["blocks"]) == 2 * found["rounds"]
    assert found["prefetched"] == [[8], [8]], "tf.data would add or tune both, and pauses would let them grow"
    assert len(set(found["traced"])) == 1, "by the first step, and never again"
    assert found["words"] == {
        "train.py:18 num_parallel_calls=1; prefetch": "Set num_parallel_calls=1 in .map(lambda n: (tf.fill([3], tf.cast(n, "
        "tf.float32)), 0.0)) (train.py:18). Prefetch batches after .batch(4) (train.py:19), while the step runs."
    }


def test_pipelines_take_turns_in_a_loop_each_from_where_it_was(ask_tensorflow: Callable[..., Any]) -> None:
    found = ask_tensorflow(
        "tests.worker.race.script_race_tasks:race_script",
        text=LOOP,
        changes=["train.py:10 buffer_size=2", "train.py:8 num_parallel_calls=1"],
        **SHORT,
    )
    assert found["failure"] is None
    assert not found["ended_by_itself"]
    assert {(arm, steps) for _, arm, steps in found["blocks"]} == {(0, 2), (1, 2), (2, 2)}
    assert found["prefetched"] == [[8], [2], [8]]
    assert set(found["batches"]) == {0, 2, 4}
    assert len(found["batches"]) >= 3 * found["rounds"] * (2 + 2), "all of them in one pass of its loop"


def test_a_step_carries_its_share_of_the_beginning_of_its_pass(ask_tensorflow: Callable[..., Any]) -> None:
    slow = ask_tensorflow(
        "tests.worker.race.script_race_tasks:race_script_that_begins_slowly",
        text=LOOP,
        first_ns=[9_000_000_000, 3_000_000_000],
        changes=["train.py:10 buffer_size=2"],
        **SHORT,
    )
    pairs = list(zip(slow["blocks"], slow["wall_ns"], strict=True))
    assert min(wall_ns for (_, arm, _), wall_ns in pairs if arm == 0) > 2 * 9_000_000_000 / 3, "2 steps of 3 batches"
    assert max(wall_ns for (_, arm, _), wall_ns in pairs if arm == 1) < 2 * 9_000_000_000 / 3
    assert any("Each pass of 3 batches starts again" in note and "as written: 9 s" in note for note in slow["notes"])


def test_a_pass_is_as_long_as_its_pipeline_goes_without_beginning_anew(ask_tensorflow: Callable[..., Any]) -> None:
    assert ask_tensorflow("tests.worker.race.script_race_tasks:batches_of_passes") == {
        "finite": 3,
        "repeated before the batch": 3,
        "repeated batches": 3,
        "shuffled after it was repeated": None,
        "some of what is shuffled for ever": 7,
        "to be counted": 2,
        "to be counted before the batch": 2,
        "without an end": None,
    }


def test_a_pool_of_its_own_and_a_cache_before_a_shuffle_race_like_any_other_change(
    ask_tensorflow: Callable[..., Any],
) -> None:
    text = LOOP.replace(".map(lambda n: n)", ".shuffle(6).map(lambda n: n)")
    changes = ["private_threadpool_size=3; prefetch", "cache-before-shuffle"]
    found = ask_tensorflow(
        "tests.worker.race.script_race_tasks:race_script",
        text=text.replace("        .prefetch(tf.data.AUTOTUNE)\n", ""),
        changes=changes,
        **SHORT,
    )
    assert found["failure"] is None
    assert {arm for arm, *_ in ((arm, steps) for _, arm, steps in found["blocks"])} == {0, 1, 2}


def test_what_a_generator_makes_is_cached_in_a_race_though_no_pass_has_ended_yet(
    ask_tensorflow: Callable[..., Any],
) -> None:
    text = LOOP.replace(
        "tf.data.Dataset.range(6)\n",
        "tf.data.Dataset.from_generator(lambda: range(6), output_signature=tf.TensorSpec([], tf.int64))\n",
    )
    assert text != LOOP
    found = ask_tensorflow(
        "tests.worker.race.script_race_tasks:race_script", text=text, changes=["cache-python"], **SHORT
    )
    assert found["failure"] is None
    assert {(arm, steps) for _, arm, steps in found["blocks"]} == {(0, 2), (1, 2)}
    assert set(found["batches"]) == {0, 2, 4}


def test_what_cannot_race_ends_the_script_with_a_sentence(ask_tensorflow: Callable[..., Any]) -> None:
    for change, words in (
        ("train.py:99 cache", "no dataset is made at train.py:99"),
        ("train.py:9 batch_size=4", "changes how many examples a step trains on"),
    ):
        assert (
            words
            in ask_tensorflow("tests.worker.race.script_race_tasks:race_script", text=LOOP, changes=[change], **SHORT)[
                "failure"
            ]
        )


DIVIDED = LOOP.replace(
    "weight =", 'strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])\n    weight ='
).replace(
    "for batch in dataset:\n            step(batch)\n            batches.append(batch[0])",
    "for batch in strategy.experimental_distribute_dataset(dataset):\n            step(batch.values[0])\n"
    "            batches.append([int(part[0]) for part in batch.values])",
)


def test_a_strategy_divides_the_batches_of_each_pipeline(ask_tensorflow: Callable[..., Any]) -> None:
    found = ask_tensorflow(
        "tests.worker.race.script_race_tasks:race_script",
        text=DIVIDED,
        changes=["train.py:11 buffer_size=2"],
        **SHORT,
    )
    assert found["failure"] is None
    assert not found["ended_by_itself"]
    assert {(arm, steps) for _, arm, steps in found["blocks"]} == {(0, 2), (1, 2)}
    assert found["prefetched"] == [[8], [2]], "of the pipelines' own; what lies behind them is the same in both"
    assert {tuple(batch) for batch in found["batches"]} == {(0, 1), (2, 3), (4, 5)}
    assert any("threads of its own that divide its batches" in note for note in found["notes"])


@pytest.mark.parametrize(("replicas", "each"), [(1, 1), (1, 3), (2, 0), (2, 1), (2, 3)])
def test_what_lies_between_an_arms_iterator_and_the_step_is_known(
    ask_tensorflow: Callable[..., Any], replicas: int, each: int
) -> None:
    said, counted = ask_tensorflow("tests.worker.race.script_race_tasks:count_beyond", replicas=replicas, each=each)
    assert said == counted


def test_a_block_that_begins_again_does_not_begin_with_what_came_in_meanwhile(
    ask_tensorflow: Callable[..., Any],
) -> None:
    text = LOOP.replace(
        "for batch in dataset:\n            step(batch)\n            batches.append(batch[0])",
        "iterator = iter(dataset)\n        for _ in range(5):\n            step(next(iterator))",
    )
    found = ask_tensorflow(
        "tests.worker.race.script_race_tasks:race_script", text=text, changes=["train.py:10 buffer_size=2"], **SHORT
    )
    assert found["failure"] is None
    again = found["drains"] - len(found["blocks"])
    assert again >= len(found["blocks"]) - 1, "each begins with the last batch of a loop, and then with the next loop"


def test_batches_that_a_function_makes_for_each_worker_cannot_be_divided_again(
    ask_tensorflow: Callable[..., Any],
) -> None:
    text = DIVIDED.replace(
        "experimental_distribute_dataset(dataset)", "distribute_datasets_from_function(lambda _: dataset)"
    )
    found = ask_tensorflow("tests.worker.race.script_race_tasks:race_script", text=text, changes=["prefetch"], **SHORT)
    assert "divides its batches among replicas in a way that cannot be made again" in found["failure"]
    assert "race it with experimental_distribute_dataset on one worker, or without a strategy" in found["failure"]
