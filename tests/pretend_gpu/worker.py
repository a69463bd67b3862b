"""The process that has TensorFlow on a pretend GPU and serves all tests of a session: fixture ``ask_gpu``."""

import ctypes
import importlib
import os
from typing import Any

import tensorflow as tf

from tests.support.warm_worker import serve


def call(name: str, gpu: dict[str, str], **arguments: Any) -> Any:
    """Call a function while the GPU is as described.

    Args:
        name: Module and name, with a colon between.
        gpu: ``PretendGpu.settings()``.
        **arguments: Of the function.
    """
    module, function = name.split(":")
    task = getattr(importlib.import_module(module), function)
    os.environ.update(gpu)
    ctypes.CDLL(os.environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"]).PretendGpuReadSettings()
    return task(**arguments)


if __name__ == "__main__":
    for device in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(device, True)
    serve(lambda name: lambda **arguments: call(name, **arguments))
