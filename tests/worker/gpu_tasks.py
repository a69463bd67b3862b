"""What tests ask of a process with pretend GPUs (fixture ``ask_gpu``)."""

from dataclasses import asdict
from typing import Any, Literal

import tensorflow as tf

from pipeline_lab.capture.sampler import GpuInUse, find_used
from pipeline_lab.runs.nvidia import find_gpu, find_gpus
from pipeline_lab.worker.prepare.device import choose_device


def choose(wish: Literal["auto", "cpu", "gpu"], replicas: int, *, is_used: bool = True) -> dict[str, Any]:
    """Choose the device of a job, and let TensorFlow use it."""
    found = choose_device(wish, replicas)
    if is_used:
        tf.ones([1])
    return {**asdict(found), "visible": [gpu.name for gpu in tf.config.get_visible_devices("GPU")]}


def read_gpu_of_script(chosen: int) -> dict[str, Any]:
    """Read the GPU of a script that trains on another one than the first."""
    tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[chosen], "GPU")
    return asdict(GpuInUse(find_used).read())


def read_gpu(ordinal: int) -> dict[str, Any]:
    gpu = find_gpu(ordinal)
    return {**asdict(gpu.read()), "slowed_by": gpu.slowed_by(), "is_unsteady": gpu.is_unsteady()}


def count_gpus() -> int | str:
    found = find_gpus()
    return len(found) if isinstance(found, list) else found.reason
