"""A map's function called in the training step: both scripts train, and what Keras logs tells whether they train alike."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab.pipeline.samples import ProofOutcome
from pipeline_lab.tuning.script import proving
from tests.worker.recipe.fixed_scripts import FixScript, fixing_in, left, proposed, read_in_warm_process

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def _warm_prover(ask_tensorflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_warm_process(ask_tensorflow, monkeypatch)


@pytest.fixture(name="fix")
def _fix(ask_tensorflow: Callable[..., Any], tmp_path: Path) -> FixScript:
    return fixing_in(tmp_path, ask_tensorflow)


HEAD = """\
import numpy as np
import {keras}
import tensorflow as tf

images = np.random.default_rng(0).integers(0, 256, [48, 6], np.uint8)
labels = np.arange(48) % 3


def scale(image, label):
    return tf.cast(image, tf.float32) / 255.0, label


ds = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(48)
ds = ds.map(scale)
ds = ds.batch(8)
"""
FIT = """\
model = {keras}.Sequential([{keras}.layers.Dense(3)])
model.compile("sgd", {keras}.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(ds, epochs=2, verbose=0)
"""
LOOP = """\
weights = tf.Variable(tf.ones([6, 3]))
for epoch in range(2):
    for x, y in ds:
        weights.assign_sub(tf.reduce_mean(x) * weights)
"""


@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
def test_the_models_step_gets_what_the_map_made_and_trains_as_before(fix: FixScript, keras: str) -> None:
    found = fix("", "into-step", source=(HEAD + FIT).format(keras=keras))
    assert proposed(found) == ["into-step"], left(found)
    assert found.proof is not None
    assert found.proof.outcome is ProofOutcome.EQUAL
    assert found.proof.sentence.endswith(
        "The changed script trains 3 steps, and Keras logs the same of them but for rounding."
    )
    assert "+model.train_step = lambda batch: own_train_step(scale(*batch))" in found.diff()


def test_a_loop_trains_with_what_it_makes_itself(fix: FixScript) -> None:
    found = fix("", "into-step", source=HEAD.format(keras="keras") + LOOP)
    assert proposed(found) == ["into-step"], left(found)
    assert found.proof is not None
    assert found.proof.sentence.endswith(
        "The changed script trains 3 steps, whose results, in a loop of its own, nothing compares."
    )
    assert "+        x, y = scale(x, y)" in found.diff()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("/ 255.0", "/ tf.reduce_max(tf.cast(image, tf.float32))", "is another one"),
        ("    return", "    if tf.reduce_max(label) > 9:\n        label = tf.zeros_like(label)\n    return", "The training fails: "),
        ("return tf.cast(image, tf.float32)", "return tf.squeeze(tf.cast(image[..., None], tf.float32))", "Its elements would be"),
        ("(images, labels))", "(images,))", proving.LONE_PART),
    ],
)  # fmt: skip
def test_what_would_not_train_alike_is_left_alone(fix: FixScript, old: str, new: str, reason: str) -> None:
    source = (HEAD + FIT).format(keras="keras")
    if "(images,)" in new:
        source = source.replace("scale(image, label)", "scale(image)").replace("255.0, label", "255.0")
        source = source.replace(FIT.format(keras="keras"), LOOP.replace("x, y in", "x in"))
    found = fix("", "into-step", source=source.replace(old, new))
    assert not proposed(found)
    assert reason in left(found)["into-step"]


def test_steps_of_another_model_before_are_not_taken_for_those_of_the_training(fix: FixScript) -> None:
    tiny = "tiny = keras.Sequential([keras.layers.Dense(3)])\ntiny.compile('sgd', 'mse')\n"
    warm_up = f"{tiny}getattr(tiny, 'fit')(np.zeros([9, 6]), np.zeros([9, 3]), batch_size=3, verbose=0)\n"
    fails = HEAD.replace(
        "    return", "    if tf.reduce_max(label) > 9:\n        label = tf.zeros_like(label)\n    return"
    )
    found = fix("", "into-step", source=(fails + warm_up + FIT.replace("epochs=2", "epochs=60")).format(keras="keras"))
    assert not proposed(found)
    assert left(found)["into-step"].startswith("The training fails: ")


def test_it_is_left_alone_unasked_where_no_device_is_seen(fix: FixScript) -> None:
    found = fix("", source=(HEAD + FIT).format(keras="keras"))
    assert "into-step" not in proposed(found)
    assert "only on request" in left(found)["into-step"]
