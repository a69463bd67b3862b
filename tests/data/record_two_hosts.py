"""Record ``two_hosts/``: two workers of a MultiWorkerMirroredStrategy, of which the second waits 30 ms for each batch.

Both run on this machine and talk over the loopback; their traces are given the names of two hosts. Run
``python tests/data/record_two_hosts.py`` to record them anew (it needs TensorFlow).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

STEPS, BATCH, WIDTH = 6, 8, 64
MAKING_S = (0.002, 0.030)
PORTS = (23711, 23712)
TARGET = Path(__file__).with_name("two_hosts") / "plugins" / "profile" / "run"


def train(worker: int, folder: str) -> None:
    """Run one worker."""
    import numpy as np
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def make_batches() -> Iterator[np.ndarray]:
        while True:
            time.sleep(MAKING_S[worker])
            yield np.ones((BATCH, WIDTH), np.float32)

    dataset = tf.data.Dataset.from_generator(make_batches, output_signature=tf.TensorSpec((BATCH, WIDTH)))
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    batches = iter(dataset.with_options(options))
    with strategy.scope():
        weights = tf.Variable(tf.random.normal((WIDTH, WIDTH)))

    def update(batch: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(batch @ weights)))
        context = tf.distribute.get_replica_context()
        weights.assign_sub(1e-3 * context.all_reduce("SUM", tape.gradient(loss, weights)))
        return loss

    @tf.function
    def step(batch: tf.Tensor) -> tf.Tensor:
        return strategy.reduce("MEAN", strategy.run(update, args=(batch,)), axis=None)

    for _ in range(2):
        step(next(batches))
    with tf.profiler.experimental.Profile(folder):
        for number in range(2, 2 + STEPS):
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                float(step(next(batches)))
    time.sleep(5)  # a worker that leaves takes the other one down


def name_host(recorded: Path, host: str) -> None:
    """Keep a trace under the name of a host."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(recorded.read_bytes())
    space.hostnames[:] = [host]
    TARGET.mkdir(parents=True, exist_ok=True)
    (TARGET / f"{host}.xplane.pb").write_bytes(space.SerializeToString())


def main() -> None:
    cluster = {"worker": [f"127.0.0.1:{port}" for port in PORTS]}
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for worker in range(len(PORTS)):
            task = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": worker}})
            command = [sys.executable, __file__, str(worker), f"{folder}/{worker}"]
            jobs.append(subprocess.Popen(command, env={**os.environ, "TF_CONFIG": task}))
        for job in jobs:
            job.wait()
        for worker in range(len(PORTS)):
            (recorded,) = Path(folder, str(worker)).rglob("*.xplane.pb")
            name_host(recorded, f"worker-{worker}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        train(int(sys.argv[1]), sys.argv[2])
    else:
        main()
