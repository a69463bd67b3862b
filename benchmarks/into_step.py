"""What it brings to keep images as uint8 until they are on the device, on the pretend GPU: proposed, predicted, measured.

    python -m benchmarks.into_step [--turns N]

Batches of 64 images of 128 × 128 pixels are scaled to floats, 12.6 MB, by a map at the end of the pipeline. ``fix`` records the script
and proposes what it finds; then the script as written and as proposed run in turn, each in a process of its own, and time their steps
from the second epoch on by their own clock. The GPU is the pretend one (``tests/pretend_gpu``) with copies at a set speed, whose
computation takes place on the cores: what is saved of copies is true, what the function costs on a real GPU is less.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.pretend_gpu import PretendGpu, build

HEAD = """\
import time

import numpy as np
import tensorflow as tf

images = np.random.default_rng(0).integers(0, 256, [640, 128, 128, 3], np.uint8)
labels = np.arange(640) % 10
EPOCHS, STEPS = 6, 40


def scale(image, label):
    return tf.cast(image, tf.float32) / 255.0, label


tf.keras.utils.set_random_seed(3)
ds = tf.data.Dataset.from_tensor_slices((images, labels)).repeat(4).batch(64)
ds = ds.map(scale, num_parallel_calls=2)
ds = ds.prefetch(4)
model = tf.keras.Sequential([tf.keras.layers.AveragePooling2D(8), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
ends = []
"""
JOBS = {
    "fit": HEAD + '''
model.compile("sgd", loss, jit_compile=False)
note = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: ends.append(time.perf_counter()))
model.fit(ds, epochs=EPOCHS, verbose=0, callbacks=[note])
''',
    "a loop": HEAD + '''
optimizer = tf.keras.optimizers.SGD()


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        value = loss(y, model(x))
    optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
    return value


for epoch in range(EPOCHS):
    for x, y in ds:
        value = train(x, y)
    float(value)
    ends.append(time.perf_counter())
''',
}  # fmt: skip
TELL = '\nprint("ms", (ends[-1] - ends[0]) / (EPOCHS - 1) / STEPS * 1e3)\n'
SPEEDS_GBPS = (12, 3, 1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.into_step", description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    turns = parser.parse_args().turns
    libraries = build(Path(".pytest_cache/pretend_gpu"))
    print(f"{'job':8} {'copies':>9} {'proposed':28} {'predicted':>22} {'as written':>11} {'proposed':>9} {'saved':>6}")
    for name, text in JOBS.items():
        for speed in SPEEDS_GBPS:
            gpu = PretendGpu(copy_gbps=speed, op_us={"MatMul": 2000, "AvgPool": 500})
            with tempfile.TemporaryDirectory() as folder:
                print(f"{name:8} {speed:4} GB/s {_race(Path(folder), text, gpu, libraries, turns)}", flush=True)


def _race(folder: Path, text: str, gpu: PretendGpu, libraries: Path, turns: int) -> str:
    """Return a line on what was proposed, predicted and measured."""
    script, fixed = folder / "train.py", folder / "fixed.py"
    script.write_text(text + TELL)
    environment = os.environ | gpu.environment(libraries) | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    command = ["-m", "pipeline_lab", "fix", "--store", str(folder / "store"), "--no-race", "--json", str(script)]
    found = json.loads(_run(command, environment))["fix"]
    proposed = ", ".join(each["rewrite"] for each in found["changes"]) or "nothing"
    predicted = found["predicted"].get("gain_percent")
    said = "-" if predicted is None else (
        f"{predicted:.0f} % ({found['predicted']['low_percent']:.0f} to {found['predicted']['high_percent']:.0f} %)"
    )  # fmt: skip
    asked = found if found["changes"] else json.loads(_run([*command, "--change", "into-step"], environment))["fix"]
    fixed.write_text(asked["files"][str(script)][1])
    times: dict[Path, list[float]] = {script: [], fixed: []}
    for _ in range(turns):
        for path, taken in times.items():
            taken.append(float(_run([str(path)], environment).rpartition("ms ")[2]))
    before, after = (statistics.median(each) for each in times.values())
    return f"{proposed:28} {said:>22} {before:8.1f} ms {after:6.1f} ms {100 * (1 - after / before):4.0f} %"


def _run(arguments: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, check=True, capture_output=True, text=True, timeout=600
    ).stdout


if __name__ == "__main__":
    main()
