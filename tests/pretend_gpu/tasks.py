"""What the tests of the pretend GPU do on it."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

SIDE = 64


@tf.function
def multiply(values: Any) -> Any:
    return tf.linalg.matmul(values, values)


def time_product() -> dict[str, float]:
    """Multiply on the device; say when the call returned and when its result was on the host, s."""
    values = tf.ones([SIDE, SIDE])
    multiply(values).numpy()  # the first call traces the function
    begun_s = time.perf_counter()
    product = multiply(values)
    called_s = time.perf_counter()
    assert product.numpy()[0, 0] == SIDE
    return {"called": called_s - begun_s, "read": time.perf_counter() - begun_s}


def trace_product(is_read: bool = True) -> dict[str, Any]:
    """Copy to the device, multiply, and copy back; return what the profiler says of it."""
    values = np.ones([SIDE, SIDE], np.float32)
    multiply(tf.constant(values)).numpy()

    def work() -> Any:
        product = multiply(tf.constant(values))
        return product.numpy() if is_read else product

    return _trace(work)


def overfill() -> str:
    """Ask for more memory than there is, and return TensorFlow's message."""
    try:
        tf.zeros([10**9])
    except tf.errors.ResourceExhaustedError as error:
        return str(error)
    return "there was enough"


def use_each() -> list[str]:
    """Return the GPUs that CUDA shows, and use them."""
    gpus = [device.name for device in tf.config.list_physical_devices("GPU")]
    tf.ones([1])  # TensorFlow makes its contexts
    return gpus


def call_on_gpu(script: str) -> str:
    """Return what a script prints while this process uses one of its GPUs."""
    tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[:1], "GPU")
    tf.ones([1])
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def _trace(work: Callable[[], Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        work()
        tf.profiler.experimental.stop()
        (path,) = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
    events = [event for plane in space.planes for event in _events(plane)]
    return {"events": events, "errors": list(space.errors), "warnings": list(space.warnings)}


def _events(plane: Any) -> list[dict[str, Any]]:
    return [
        {
            "plane": plane.name,
            "line": line.name,
            "name": plane.event_metadata[event.metadata_id].name,
            "start_ns": line.timestamp_ns + event.offset_ps / 1000,
            "end_ns": line.timestamp_ns + (event.offset_ps + event.duration_ps) / 1000,
            **{plane.stat_metadata[stat.metadata_id].name: _value(plane, stat) for stat in event.stats},
        }
        for line in plane.lines
        for event in line.events
    ]


def _value(plane: Any, stat: Any) -> Any:
    value = getattr(stat, stat.WhichOneof("value"))
    return plane.stat_metadata[value].name if stat.HasField("ref_value") else value
