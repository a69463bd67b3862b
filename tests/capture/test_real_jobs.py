"""One real script, watched: it trains, profiles itself in between, and records windows of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline_lab import analyze
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_events import NoteEvent, WindowEvent, read_events
from pipeline_lab.runs.run_tables import MODEL, STEPS, read_table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.worker.record.window_recorder import BUSY

SCRIPT = """
import sys, time
import keras
import tensorflow as tf
from pipeline_lab.capture import ProfileWindows

dataset = tf.data.Dataset.range(10**9).map(lambda x: tf.random.normal([32, 32]) * tf.cast(x, tf.float32)).batch(4)
weights = tf.Variable(tf.ones([32, 32]))

@tf.function
def step(batch):
    return tf.reduce_mean(tf.matmul(batch, weights))

batches = iter(dataset)

def train(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step(next(batches))

train(4)
tf.profiler.experimental.start("own-logs")
train(0.2)
tf.profiler.experimental.stop()

def wait(x):
    time.sleep(0.3)
    return x

vectors = tf.data.Dataset.range(10**9).map(lambda x: tf.cast(x, tf.float32) * tf.ones([8, 1])).map(
    lambda x: (tf.ensure_shape(tf.numpy_function(wait, [x], tf.float32), [8, 1]), x)
)
model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
model.compile(loss="mse")
board = keras.callbacks.TensorBoard("keras-logs", profile_batch=(3, 14))
board.summary.scalar = lambda *_, **__: None  # for these TensorBoard itself would have to be installed
model.fit(vectors, steps_per_epoch=16, verbose=0, callbacks=[board])
with ProfileWindows(sys.argv[1], steps_per_window=2, every_steps=20, warmup_steps=2) as windows:
    for number, _ in zip(range(60), windows.steps(batches)):
        time.sleep(0.02)
print(windows.run.id)
import os
os._exit(0)
"""


@pytest.mark.tensorflow
def test_a_script_is_watched_and_records_itself(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    store = RunStore(tmp_path / "store")
    command = [sys.executable, "-m", "pipeline_lab.capture.watch_script", "--store", str(store.root)]
    command += ["--every", "3", "--seconds", "0.3", "train.py", str(store.root)]
    (scratch := tmp_path / "tmp").mkdir()  # AutoGraph leaves files
    ended = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False, env={**os.environ, "TMPDIR": str(scratch)}
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    own = ended.stdout.split()[-1]
    assert re.search(r"The script called os\._exit\(0\) at train\.py, line \d+", ended.stderr)
    assert "Next:" in ended.stderr
    assert list((tmp_path / "own-logs").rglob("*.xplane.pb")), "the script's own profile"
    own_steps = analyze(tmp_path / "keras-logs").steps
    assert isinstance(own_steps, Steps)
    assert "Profiled batch" in own_steps.marker
    assert own_steps.count == 12, "the profile of Keras' own callback"
    (watched,) = (record.id for record in store.runs() if record.id != own)
    assert {store.read(run).status.state for run in (own, watched)} == {RunState.DONE}
    assert {store.read(run).environment["device"] for run in (own, watched)} == {"CPU"}
    for run in (own, watched):
        events = read_events(store.folder(run).events)
        assert [event for event in events if isinstance(event, WindowEvent)]
        assert read_table(store.folder(run).model, MODEL).num_rows, "tf.data's own model of the script's iterator"
        assert not [event.sentence for event in events if isinstance(event, NoteEvent) and "lost" in event.sentence]
    notes = [event.sentence for event in read_events(store.folder(watched).events) if isinstance(event, NoteEvent)]
    assert BUSY in notes, "the script's own profile went first"
    steps = analyze(store.folder(own).path).steps
    assert isinstance(steps, Steps)
    assert re.search("train", steps.marker)
    assert isinstance(analyze(store.folder(watched).path).steps, Steps)
    rows = read_table(store.folder(watched).steps, STEPS).to_pylist()
    first, *others = rows[:16]
    assert {row["examples"] for row in (first, *others)} == {8}, "the steps of `fit`, not those that took no gradients"
    assert first["wait_ns"] is None, "it traced its function"
    waited_ns, length_ns = (
        sum(values) for values in zip(*((row["wait_ns"], _length_ns(row)) for row in others), strict=True)
    )
    assert waited_ns > length_ns / 2, "tf.data saw how long each step in the graph waited for the sleeping function"


def _length_ns(row: dict[str, Any]) -> int:
    return int(row["end_ns"] - row["start_ns"])
