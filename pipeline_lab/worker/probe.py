"""What ``pipeline-lab doctor`` measures with TensorFlow, in a process of its own: ``python -m pipeline_lab.worker.probe``.

Each measurement is a line of JSON, ``{"name": …, "found": {…}}`` or ``{"name": …, "error": …}``, printed as soon as it is
known: a later one may crash or hang, and the earlier ones are worth having. Times are in ms.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from pipeline_lab.units import NS_PER_MS
from pipeline_lab.worker.note.failures import first_line
from pipeline_lab.worker.record.profiler import wait_for_devices

SIDE = 4096
"""Rows of the matrices that are multiplied: a product takes any GPU several times as long as its launch."""
STEP_MS, PYTHON_MS, STEPS = 20.0, 10.0, 10
COPIED_BYTES = 64_000_000
TRIALS, TRIALS_MS = 3, 100.0
"""How often something is timed, and how long what is timed many times has to take in all."""

Found = dict[str, Any]


def look_at_devices(uses: int | None = 1) -> Found:
    """Say what TensorFlow was built for, and which devices it sees.

    Args:
        uses: GPUs that are used from here on, and of them only as much memory as is needed: others may train on them. None
            for all.
    """
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices(gpus[:uses], "GPU")
    devices = [device.name.removeprefix("/physical_device:") for device in tf.config.list_physical_devices()]
    for gpu in gpus[:uses]:
        tf.config.experimental.set_memory_growth(gpu, True)
    build = tf.sysconfig.get_build_info()
    return {
        "devices": devices,
        "names": [tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name) for gpu in gpus],
        "cuda": tf.test.is_built_with_cuda(),
        "built_for": {name: build[name] for name in ("cuda_version", "cudnn_version") if name in build},
    }


def profile() -> Found:
    """Record a small trace, and say what is in it."""
    values = tf.random.normal([64, 64])
    tf.linalg.matmul(values, values).numpy()
    with tempfile.TemporaryDirectory() as folder:
        started_s = time.perf_counter()
        tf.profiler.experimental.start(folder)
        load_ms = 1e3 * (time.perf_counter() - started_s)
        tf.linalg.matmul(values, tf.constant(np.ones([64, 64], np.float32))).numpy()
        wait_for_devices()
        tf.profiler.experimental.stop()
        traces = [xplane_pb2.XSpace.FromString(path.read_bytes()) for path in Path(folder).rglob("*.xplane.pb")]
    planes = [plane for trace in traces for plane in trace.planes]
    on_gpu = [plane for plane in planes if plane.name.startswith("/device:GPU")]
    return {
        "planes": sorted({plane.name for plane in planes if any(line.events for line in plane.lines)}),
        "gpu_events": sum(len(line.events) for plane in on_gpu for line in plane.lines),
        "errors": [error for trace in traces for error in trace.errors],
        "warnings": [warning for trace in traces for warning in trace.warnings],
        "start_ms": load_ms,
    }


def measure_copies() -> Found:
    """Time copies of a large tensor to the GPU and back."""
    with tf.device("/CPU:0"):
        on_host = [tf.zeros([COPIED_BYTES // 4]) for _ in range(TRIALS)]  # TensorFlow copies each of them only once

    def copy_to_device() -> Any:
        with tf.device("/GPU:0"):
            return tf.identity(on_host.pop())

    to_device_ms = _best_ms(copy_to_device)
    with tf.device("/GPU:0"):
        on_device = tf.zeros([COPIED_BYTES // 4])
    to_host_ms = _best_ms(on_device.numpy)
    return {"bytes": COPIED_BYTES, "to_device_ms": to_device_ms, "to_host_ms": to_host_ms}


def measure_overlap() -> Found:
    """Time steps that Python spends time between, with the results never read, and each read at once."""
    step, step_ms = make_step()

    def train(*, reads: bool) -> None:
        for _ in range(STEPS):
            result = step()
            if reads:
                float(result)
            time.sleep(PYTHON_MS / 1e3)

    never_ms, at_once_ms = (_best_ms(partial(train, reads=reads)) / STEPS for reads in (False, True))
    return {"step_ms": step_ms, "python_ms": PYTHON_MS, "never_read_ms": never_ms, "read_at_once_ms": at_once_ms}


def measure_precision() -> Found:
    """Time a product in each precision, and take a step whose loss is scaled."""
    import keras

    kinds = (tf.float32, tf.float16, tf.bfloat16)
    products = {f"{kind.name}_ms": _lasting_ms(_multiply(FEW, kind)) / FEW for kind in kinds}
    weight = tf.Variable(1.0)
    optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.5))
    optimizer.build([weight])
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(tf.cast(weight, tf.float16))
    optimizer.apply(tape.gradient(loss, [weight]))
    return {**products, "weight_after_scaled_step": float(weight)}


def try_xla() -> Found:
    """Compile a product with XLA, and compare it with the usual one."""
    values = tf.random.stateless_normal([256, 256], [1, 2])

    def compute(values: Any) -> Any:
        return tf.reduce_mean(tf.abs(tf.linalg.matmul(values, values)))

    plain, compiled = float(tf.function(compute)(values)), float(tf.function(compute, jit_compile=True)(values))
    return {"difference": abs(plain - compiled)}


def reduce_over_gpus() -> Found:
    """Sum over all GPUs, as the gradients of replicas are summed."""
    gpus = tf.config.list_logical_devices("GPU")
    if len(gpus) < 2:
        return {"gpus": len(gpus)}
    strategy = tf.distribute.MirroredStrategy([gpu.name for gpu in gpus])

    def add_up() -> Any:
        ones = strategy.run(lambda: tf.ones([COPIED_BYTES // 4]))
        return strategy.experimental_local_results(strategy.reduce("SUM", ones, axis=None))[0][0]

    total = tf.function(add_up)
    return {"gpus": len(gpus), "sum": float(total()), "bytes": COPIED_BYTES, "reduce_ms": _best_ms(total)}


FEW = 4
"""Products of a call that is timed."""


def make_step() -> tuple[Callable[[], Any], float]:
    """Return a step that keeps the device busy for about a set time, and the time that it takes, ms."""
    step = _multiply(max(1, round(FEW * STEP_MS / _lasting_ms(_multiply(FEW)))))
    return step, _lasting_ms(step)


def _multiply(times: int, kind: tf.DType = tf.float32) -> Callable[[], Any]:
    """Return a compiled function that multiplies matrices one after the other, and has run."""
    matrix = tf.eye(SIDE, dtype=kind)

    def compute() -> Any:
        product = matrix
        for _ in tf.range(times):  # of a number that the graph holds: one that is handed in makes each call wait
            product = tf.linalg.matmul(product, matrix)
        return product[0, 0]

    compiled: Callable[[], Any] = tf.function(compute)
    compiled()
    return compiled


def _lasting_ms(work: Callable[[], object]) -> float:
    """Return the time of one of so many calls that together they last: an idle GPU has a low clock, and raises it meanwhile."""

    def repeat(times: int) -> None:
        for _ in range(times):
            work()

    calls, lasted_ms = 1, 0.0
    while lasted_ms < TRIALS_MS:
        calls *= 2
        lasted_ms = _best_ms(partial(repeat, calls), trials=1)
    return _best_ms(partial(repeat, calls)) / calls


def _best_ms(work: Callable[[], object], trials: int = TRIALS) -> float:
    """Return the shortest time that the work takes, its end on the device included."""
    wait_for_devices()
    times = []
    for _ in range(trials):
        begun_ns = time.perf_counter_ns()
        work()
        wait_for_devices()
        times.append(time.perf_counter_ns() - begun_ns)
    return min(times) / NS_PER_MS


BRIEF: Mapping[str, Callable[[], Found]] = {"devices": look_at_devices, "profile": profile}
ON_GPU: Mapping[str, Callable[[], Found]] = {
    "devices": partial(look_at_devices, uses=None),
    "profile": profile,
    "copies": measure_copies,
    "overlap": measure_overlap,
    "precision": measure_precision,
    "xla": try_xla,
    "gpus": reduce_over_gpus,
}


def measure(measurements: Mapping[str, Callable[[], Found]]) -> Iterator[Found]:
    """Return each measurement by its name, or why it failed."""
    for name, ask in measurements.items():
        try:
            yield {"name": name, "found": ask()}
        except Exception as error:
            yield {"name": name, "error": f"{type(error).__name__}: {first_line(error)}"}


if __name__ == "__main__":
    for answer in measure(ON_GPU if "--gpu" in sys.argv else BRIEF):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        if answer["name"] == "profile" and not tf.config.list_physical_devices("GPU"):
            break  # the rest measures GPUs, and would take a CPU minutes
