"""Choose the device before TensorFlow touches any."""

from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf

from pipeline_lab.errors import OptionsError
from pipeline_lab.worker.train.training_steps import Batch

GPU_PART_MB = 1024
"""Memory of each logical GPU, where one is divided."""


@dataclass(frozen=True)
class JobDevice:
    """Where the job trains.

    Attributes:
        name: For people, such as ``CPU`` or ``GPU 0: NVIDIA H200``.
        is_gpu: It runs beside the host, so that results are read back a step later.
        gpus: Name and memory (bytes, None if unknown) of each GPU that the job can see.
    """

    name: str
    is_gpu: bool
    gpus: list[dict[str, Any]]

    def hold(self, batch: Batch) -> Batch:
        """Put a batch into the device's memory, so that a step on it waits for no copy."""
        if not self.is_gpu:
            return batch
        if any(isinstance(value, tf.distribute.DistributedValues) for value in tf.nest.flatten(batch)):
            return batch  # each replica's part is on its device
        with tf.device("/GPU:0"):
            held: Batch = tf.nest.map_structure(tf.identity, batch)
        return held


def choose_device(wish: Literal["auto", "cpu", "gpu"], replicas: int = 1) -> JobDevice:
    """Make the wished-for device the one that TensorFlow uses.

    Args:
        wish: What the options ask for.
        replicas: Devices that share each batch; where there are fewer, the first is divided into so many logical ones.

    Raises:
        OptionsError: A GPU was asked for, but TensorFlow sees none.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if wish == "gpu" and not gpus:
        raise OptionsError(
            "training.device is gpu, but TensorFlow sees no GPU on this machine; choose auto or cpu, "
            "or install with requirements-gpu.txt (`pipeline-lab doctor` says what is missing)."
        )
    if wish == "cpu" or not gpus:
        tf.config.set_visible_devices([], "GPU")
        _divide(tf.config.list_physical_devices("CPU"), replicas)
        return JobDevice("CPU", is_gpu=False, gpus=[])
    if not _divide(gpus, replicas, GPU_PART_MB):
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
    descriptions = describe_gpus()
    return JobDevice(f"GPU 0: {descriptions[0]['name']}", is_gpu=True, gpus=descriptions)


def _divide(devices: list[Any], replicas: int, memory_mb: int | None = None) -> bool:
    """Divide the first device into logical ones if there are fewer devices than replicas; say whether it was."""
    if len(devices) >= replicas:
        return False
    part = tf.config.LogicalDeviceConfiguration(memory_limit=memory_mb)
    tf.config.set_logical_device_configuration(devices[0], [part] * replicas)
    return True


def describe_gpus() -> list[dict[str, Any]]:
    """Return name and memory (bytes, None if unknown) of each GPU that TensorFlow sees."""
    return [_describe(gpu) for gpu in tf.config.list_physical_devices("GPU")]


def _describe(gpu: Any) -> dict[str, Any]:
    details = tf.config.experimental.get_device_details(gpu)
    return {"name": str(details.get("device_name", gpu.name)), "memory_bytes": details.get("memory_limit")}
